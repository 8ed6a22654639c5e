// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ptrace/tracee/launch.hpp"
#include "ptrace/tracee/launch_child.hpp"

namespace backtrail::tracee {
namespace {

TEST(ShellQuote, LeavesHarmlessWordsAlone) {
  EXPECT_EQ(shell_quote("/usr/bin/g++-12"), "/usr/bin/g++-12");
  EXPECT_EQ(shell_quote("a.out"), "a.out");
}

TEST(ShellQuote, QuotesWhatAShellReads) {
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("two words"), "'two words'");
  EXPECT_EQ(shell_quote("$HOME;`x`"), "'$HOME;`x`'");
  EXPECT_EQ(shell_quote("it's"), R"('it'\''s')");
  EXPECT_EQ(shell_quote("~/x"), "'~/x'");
}

TEST(ShellCommand, PassesArgumentsAsTheyAre) {
  LaunchSpec spec;
  spec.program = "a b";
  spec.arguments = {"$X", ">out", "'q'"};
  EXPECT_EQ(shell_command(spec, spec.program), "exec 'a b' $X >out 'q'");
  spec.wrapper = {"env", "A='1 2'"};
  EXPECT_EQ(shell_command(spec, "prog"), "exec env A='1 2' prog $X >out 'q'");
}

TEST(LaunchFailure, IsToldInOneSentence) {
  LaunchSpec spec;
  spec.program = "prog";
  const auto text = [&](const Error& error) { return launch_failure_text(error, spec); };
  EXPECT_EQ(text(make_error(TraceErrc::kStartupFailed, "start-up", 127 << 8)),
            "During startup program exited with code 127.");
  EXPECT_EQ(text(make_error(TraceErrc::kStartupFailed, "start-up", SIGSEGV)),
            "During startup program terminated with signal SIGSEGV, Segmentation fault.");
  EXPECT_EQ(text(errno_error(ENOENT, "find the program")), "prog: No such file or directory");
  EXPECT_EQ(text(errno_error(EISDIR, "find the program")), "prog: is a directory");
  EXPECT_NE(text(make_error(TraceErrc::kUnsupported, "inspect the program")).find("another CPU"),
            std::string::npos);
  EXPECT_NE(text(errno_error(EPERM, kTraceRefused)).find("SYS_PTRACE"), std::string::npos);
  EXPECT_EQ(text(errno_error(EPERM, kTraceRefused)).find("emulator"), std::string::npos);
  EXPECT_NE(text(errno_error(ENOSYS, kTraceRefused)).find("emulator"), std::string::npos);
  EXPECT_FALSE(startup_end(errno_error(ENOENT, "find the program")));
}

}  // namespace
}  // namespace backtrail::tracee
