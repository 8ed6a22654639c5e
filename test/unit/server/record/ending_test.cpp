// SPDX-License-Identifier: Apache-2.0
// Which ends keep a crash file, and the file's name.
#include "server/record/ending.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "server/record/crash_file.hpp"

namespace backtrail::server {
namespace {

using std::chrono::milliseconds;

TEST(KeepPolicy, WithoutWordsKeepsSignalsAndSanitizersReports) {
  const KeepPolicy policy;
  EXPECT_TRUE(policy.wants({.reason = EndReason::kSignal, .signal = SIGSEGV}, true));
  EXPECT_TRUE(policy.wants({.reason = EndReason::kSanitizer, .exit_code = 1}, false));
  EXPECT_FALSE(policy.wants({.reason = EndReason::kExit, .exit_code = 1}, true));
  EXPECT_FALSE(policy.wants({.reason = EndReason::kTimeout}, true));
}

TEST(KeepPolicy, KeepsWhatItsWordsSay) {
  const auto abort = KeepPolicy::parse("abort");
  ASSERT_TRUE(abort);
  EXPECT_TRUE(abort->wants({.reason = EndReason::kSignal, .signal = SIGABRT}, true));
  EXPECT_FALSE(abort->wants({.reason = EndReason::kSignal, .signal = SIGSEGV}, true));
  const auto always = KeepPolicy::parse("always");
  EXPECT_TRUE(always->wants({.reason = EndReason::kExit}, true));
  EXPECT_FALSE(always->wants({.reason = EndReason::kExit}, false));
  const auto exit = KeepPolicy::parse("signal,exit");
  EXPECT_TRUE(exit->wants({.reason = EndReason::kExit, .exit_code = 9}, false));
  EXPECT_FALSE(exit->wants({.reason = EndReason::kExit}, true));
}

TEST(KeepPolicy, ASanitizerThatAbortsIsOne) {
  const auto policy = KeepPolicy::parse("sanitizer");
  Ending ending{.reason = EndReason::kSignal, .signal = SIGABRT};
  EXPECT_FALSE(policy->wants(ending, true));
  ending.sanitized = true;
  EXPECT_TRUE(policy->wants(ending, true));
}

TEST(KeepPolicy, TimeIsInSecondsOrMinutes) {
  EXPECT_EQ(KeepPolicy::parse("timeout=5")->timeout, milliseconds{5000});
  EXPECT_EQ(KeepPolicy::parse("signal,timeout=0.25s")->timeout, milliseconds{250});
  EXPECT_EQ(KeepPolicy::parse("timeout=2m")->timeout, milliseconds{120'000});
  for (const char* wrong : {"timeout=", "timeout=0", "timeout=-1", "timeout=5h", "timeout=nan",
                            "timeout=1e300", "timeout", "signals", "signal,,abort"}) {
    EXPECT_FALSE(KeepPolicy::parse(wrong)) << wrong;
  }
}

TEST(CrashFileName, FillsInWhatIsKnown) {
  EXPECT_EQ(crash_file_name("a/%e.%p.%t", 12, "prog", 34), "a/prog.12.34");
  EXPECT_EQ(crash_file_name("%e%%%x%", 1, "a/b", 2), "a!b%%x%");
  // Control characters, and characters that artifacts of CI systems must not have.
  EXPECT_EQ(crash_file_name("%e", 1, "a\x1b[2J\n:<>|*?\"\\\x7f b", 2), "a![2J!!!!!!!!!! b");
}

TEST(CrashFiles, AnEndThatCameTooSuddenlyIsTold) {
  const Recorder recorder{{}};
  const tracee::StopEvent killed{.kind = tracee::StopKind::kProcessSignalled, .signal = SIGKILL};
  CrashFileOptions options;
  options.pattern = "crash.core";
  CrashFiles files{recorder, options, "program"};
  EXPECT_EQ(
      files.finish(killed),
      "backtrail: no crash file: SIGKILL came just as the program was resumed, and nothing of "
      "it could be read: run it again\n");
  options.keep.signal = false;
  CrashFiles others{recorder, options, "program"};
  EXPECT_EQ(others.finish(killed), "");
  CrashFiles none{recorder, {}, "program"};
  EXPECT_EQ(none.finish(killed), "");
}

}  // namespace
}  // namespace backtrail::server
