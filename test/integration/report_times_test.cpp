// SPDX-License-Identifier: Apache-2.0
// Off-CPU times of a crashed program, from the kernel's context switches (if this user may see
// them).
#include <gmock/gmock.h>
#include <unistd.h>

#include "ptrace/perf/sched_marks.hpp"
#include "report_fixture.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ReportTimes : public test::ReportFixture {
 protected:
  void SetUp() override {
    const auto opened = SchedMarks::open(system_perf_kernel(), ::getpid());
    if (!opened) GTEST_SKIP() << explain_perf_error(opened.error());
  }
};

// A cancellation point's helper has no name in a stripped library.
constexpr const char* kWaitedInTheCall =
    "wait_long  waits.c:[0-9]+\n"
    "( .*(nanosleep|asynccancel|libc\\.so\\.6\\+0x).*\n)+"
    " +\\.\\.\\. waited for [0-9.]+ m?s, until .* before the end\n"
    "( .*(asynccancel|libc\\.so\\.6\\+0x).*\n)*"
    " +work  waits.c:[0-9]+\n";

TEST_F(ReportTimes, AWaitStandsInTheCallThatWaited) {
  record("waits");
  EXPECT_THAT(report(),
              AllOf(ContainsRegex(kWaitedInTheCall), ContainsRegex("waited [1-9] times? \\(")));
  EXPECT_THAT(report({"--json"}),
              AllOf(ContainsRegex("\"kind\":\"off-cpu\",\"depth\":[0-9]+,\"why\":\"waits\","
                                  "\"ns\":[0-9]{9},"),
                    HasSubstr("\"times\":{\"known_ns\":"),
                    ContainsRegex("\"began_before_end_ns\":\\[[0-9]+,[0-9]+\\]")));
}

TEST_F(ReportTimes, ALongWaitIsSeenBehindManyShortOnes) {
  record("waits", {"often"});
  EXPECT_THAT(report(), ContainsRegex(kWaitedInTheCall));
}

TEST_F(ReportTimes, StopsOfTheRecorderAreNoWaits) {
  // The stops for each step must not count as waits. The kernel may also have waited for a page of
  // the program.
  record("waits_static", {}, "step");
  EXPECT_THAT(report(),
              AllOf(ContainsRegex(kWaitedInTheCall), ContainsRegex("waited [1-9] times? \\(")));
}

TEST_F(ReportTimes, ViewersShowTheWait) {
  record("waits");
  EXPECT_THAT(report({"--perfetto"}),
              AllOf(ContainsRegex("\"name\":\"waited [0-9.]+ m?s\",\"args\":.\"ns\":[0-9]+,"),
                    ContainsRegex("\"name\":\"ms before the end .at most., waits [0-9]+\",")));
  if (!has("node")) GTEST_SKIP() << "no node";
  run({BT_SERVER, "report", "x.core", "--html", "-o", "x.html"});
  const std::string text = run({"node", BT_PAGE_CHECK, "x.html"}, -1);
  EXPECT_EQ(status, 0) << text;
  // From glibc 2.41 on a stripped library does not name the function of the system call.
  EXPECT_THAT(text, AllOf(ContainsRegex("waits ([^\n]*nanosleep[^ ]*|[^\n]*syscall_cancel[^ ]*|"
                                        "libc\\.so\\.6\\+0x[0-9a-f]+) for [0-9]{9}"),
                          ContainsRegex("began [0-9.]+ [mun]?s( to [0-9.]+ [mun]?s)?\n"),
                          ContainsRegex("at Waited for [0-9.]+ m?s, until .* before the end\n")));
}

TEST_F(ReportTimes, WhoWantsNoneGetsNone) {
  run({BT_SERVER, "record", "--no-times", "-o", "x.core", "--",
       std::string{BT_INFERIOR_DIR} + "/waits"},
      -1);
  EXPECT_THAT(report(), Not(HasSubstr("waited")));
}

}  // namespace
}  // namespace backtrail::tracee
