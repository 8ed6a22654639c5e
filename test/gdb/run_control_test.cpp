// SPDX-License-Identifier: Apache-2.0
// Running and stopping: the basics of every gdb session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RunControl, StopsAtTheFirstInstruction) {
  GdbSession gdb{on("calls")};
  EXPECT_THAT(gdb.run("x/i $pc"), HasSubstr("mov    %rsp,%rdi"));
  EXPECT_EQ(gdb.value("finished"), "0");
}

TEST(RunControl, RunsToTheEnd) {
  GdbSession gdb{on("calls")};
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("global 9 text after"));
  EXPECT_TRUE(gdb.quit());
}

TEST(RunControl, ReportsTheExitStatus) {
  GdbSession gdb{on("exits", {"77"})};
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 0115"));
  EXPECT_EQ(gdb.value("$_exitcode"), "77");
}

TEST(RunControl, ReportsTheSignalThatEndsTheProgram) {
  GdbSession gdb{on("exits", {"abort"})};
  EXPECT_THAT(gdb.run("continue"), HasSubstr("received signal SIGABRT, Aborted"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("terminated with signal SIGABRT"));
  EXPECT_EQ(gdb.value("$_exitsignal"), "6");
}

TEST(RunControl, ReportsAKillFromTheProgramItself) {
  GdbSession gdb{on("exits", {"kill"})};
  EXPECT_THAT(gdb.run("continue"), HasSubstr("terminated with signal SIGKILL"));
}

TEST(RunControl, StepsOverAndInto) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  EXPECT_THAT(gdb.run("next"), HasSubstr("int sum = 0;"));
  EXPECT_THAT(gdb.run("next"), HasSubstr("for (int i = 0"));
  EXPECT_THAT(gdb.run("next"), HasSubstr("sum += add(i, global);"));
  EXPECT_THAT(gdb.run("step"), HasSubstr("add (a=0, b=7)"));
  EXPECT_THAT(gdb.run("finish"), HasSubstr("Value returned is $1 = 7"));
  EXPECT_THAT(gdb.run("until"), HasSubstr("for (int i = 0"));
  EXPECT_EQ(gdb.value("sum"), "7");
}

TEST(RunControl, StepsOneInstruction) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break *add", "continue"});
  const std::string next = gdb.run("x/2i $pc");
  gdb.run("stepi");
  EXPECT_EQ(gdb.value("$pc == (char*)add + 1"), "1") << next;
  gdb.run("stepi 3");
  EXPECT_THAT(gdb.run("nexti"), HasSubstr("a + b"));
}

TEST(RunControl, NextOverRecursion) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break fib if n == 8", "continue", "delete"});
  EXPECT_THAT(gdb.run("next"), HasSubstr("fib(n - 1)"));
  EXPECT_THAT(gdb.run("next"), HasSubstr("}"));
  EXPECT_EQ(gdb.value("n"), "8");
}

TEST(RunControl, FinishReturnsStructures) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break moved", "continue"});
  EXPECT_THAT(gdb.run("finish"), HasSubstr("{x = 27, y = 4, weight = 2.5}"));
}

TEST(RunControl, UpAndDownTheStack) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break fib if n == 5", "continue"});
  EXPECT_THAT(gdb.run("backtrace"),
              AllOf(HasSubstr("#0  fib (n=5)"), ContainsRegex("#6 .* in main")));
  EXPECT_THAT(gdb.run("up"), HasSubstr("fib (n=6)"));
  EXPECT_THAT(gdb.run("frame function main"), HasSubstr("main"));
  EXPECT_EQ(gdb.value("loops"), "3");
}

TEST(RunControl, JumpsAndReturnsEarly) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break add", "continue", "delete", "return 1000"});
  gdb.run_all({"break touch_global", "continue"});
  EXPECT_EQ(gdb.run("up").empty(), false);
  EXPECT_EQ(gdb.value("sum"), "1017");
}

TEST(RunControl, InterruptsAndGoesOn) {
  GdbSession gdb{on("spin")};
  gdb.start("continue");
  ASSERT_TRUE(gdb.wait_for_server("ready"));
  gdb.interrupt();
  EXPECT_THAT(gdb.finish(), HasSubstr("received signal SIGINT, Interrupt"));
  gdb.run("set var go_on = 1");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 03"));
  EXPECT_TRUE(gdb.wait_for_server("survived"));
}

TEST(RunControl, InterruptsAgainAndAgain) {
  GdbSession gdb{on("spin", {"3"})};
  gdb.run_all({"break main", "continue"});
  gdb.start("continue");
  ASSERT_TRUE(gdb.wait_for_server("ready"));
  gdb.interrupt();
  ASSERT_THAT(gdb.finish(), HasSubstr("SIGINT"));
  for (int i = 0; i < 5; ++i) {
    // The program must prove that it ran: it hits a breakpoint, then the next Ctrl-C stops it.
    gdb.run("tbreak usleep");
    ASSERT_THAT(gdb.run("continue"), HasSubstr("usleep"));
    gdb.run_all({"continue&", "interrupt"});
    ASSERT_TRUE(gdb.wait_for_gdb("SIGINT"));
  }
  gdb.run("set var go_on = 1");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 03"));
}

TEST(RunControl, DetachLetsTheProgramGoOn) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break fib", "continue", "break add"});
  EXPECT_THAT(gdb.run("detach"), HasSubstr("Detaching from program"));
  EXPECT_TRUE(gdb.wait_for_server("fib 55"));
  EXPECT_TRUE(gdb.wait_for_server("global 9 text after"));
  EXPECT_TRUE(gdb.quit());
}

TEST(RunControl, DetachAfterACallLetsTheProgramGoOn) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break fib", "continue"});
  EXPECT_THAT(gdb.run("print add(1, 2)"), HasSubstr("= 3"));
  EXPECT_THAT(gdb.run("detach"), HasSubstr("Detaching from program"));
  EXPECT_TRUE(gdb.wait_for_server("fib 55"));
  EXPECT_TRUE(gdb.wait_for_server("global 9 text after"));
  EXPECT_TRUE(gdb.quit());
}

TEST(RunControl, KillEndsTheProgram) {
  GdbSession gdb{on("spin")};
  gdb.run_all({"break main", "continue"});
  EXPECT_THAT(gdb.run("kill"), HasSubstr("killed"));
  EXPECT_TRUE(gdb.wait_for_server_end());
  EXPECT_THAT(gdb.server_output(), Not(HasSubstr("ready")));
}

TEST(RunControl, QuittingGdbKillsWhatTheServerStarted) {
  GdbSession gdb{on("spin")};
  gdb.run_all({"break main", "continue"});
  EXPECT_TRUE(gdb.quit());
  EXPECT_TRUE(live_descendants().empty());
}

TEST(RunControl, VanishingGdbEndsServerAndProgram) {
  GdbSession gdb{on("spin")};
  gdb.run_all({"break main", "continue"});
  gdb.kill_gdb();
  EXPECT_TRUE(gdb.wait_for_server_end());
}

// gdb 13 does not turn round after that in non-stop: it goes on asking for steps back.
TEST(RunControl, NonStopSaysThatItDoesNotGoBack) {
  GdbOptions options = on("calls");
  options.setup = {"set non-stop on"};
  GdbSession gdb{std::move(options)};
  gdb.run_all({"break main", "continue"});
  EXPECT_THAT(gdb.run("reverse-stepi"), HasSubstr("all-stop mode only"));
  EXPECT_THAT(gdb.run("info threads"), Not(HasSubstr("(running)")));
  EXPECT_THAT(gdb.run("kill"), HasSubstr("killed"));
}

TEST(RunControl, NonStopRunsInTheBackground) {
  GdbOptions options = on("spin", {"2"});
  options.setup = {"set non-stop on"};
  GdbSession gdb{std::move(options)};
  gdb.run("break wait_outside");
  gdb.run("continue -a&");
  ASSERT_TRUE(gdb.wait_for_gdb("hit Breakpoint 1"));
  gdb.run("delete");
  gdb.run("continue -a&");
  ASSERT_TRUE(gdb.wait_for_server("ready"));
  EXPECT_THAT(gdb.run("info threads"), HasSubstr("(running)"));
  gdb.run("interrupt -a");
  gdb.run("thread 1");
  EXPECT_TRUE(gdb.alive());
}

}  // namespace
}  // namespace backtrail::test
