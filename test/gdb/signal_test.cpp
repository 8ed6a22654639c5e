// SPDX-License-Identifier: Apache-2.0
// Signals: reported, passed on, dropped, injected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Signals, AreReportedAndDelivered) {
  GdbSession gdb{on("signals")};
  gdb.run("handle SIGALRM stop print pass");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("received signal SIGUSR1"));
  EXPECT_EQ(gdb.value("usr1"), "0");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("received signal SIGUSR2"));
  EXPECT_EQ(gdb.value("usr1"), "1");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("received signal SIGALRM"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("received signal SIG34"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("received signal SIGUSR1"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 025"));
  EXPECT_TRUE(gdb.wait_for_server("usr1 2 usr2 1 alarms 1 values 42"));
}

TEST(Signals, PassSilently) {
  GdbSession gdb{on("signals")};
  gdb.run("handle SIGUSR1 SIGUSR2 SIG34 nostop noprint pass");
  EXPECT_THAT(gdb.run("continue"),
              AllOf(HasSubstr("exited with code 025"), Not(HasSubstr("received"))));
}

TEST(Signals, ArePrintedWithoutStopping) {
  GdbSession gdb{on("signals")};
  gdb.run("handle SIGUSR1 SIGUSR2 SIG34 nostop print pass");
  const std::string reply = gdb.run("continue");
  EXPECT_EQ(count(reply, "received signal SIGUSR1"), 2);
  EXPECT_THAT(reply, HasSubstr("exited with code 025"));
}

TEST(Signals, CanBeSwallowed) {
  GdbSession gdb{on("signals")};
  gdb.run_all({"handle SIGUSR1 nostop noprint nopass", "handle SIGUSR2 SIG34 nostop pass"});
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 01]"));
  EXPECT_TRUE(gdb.wait_for_server("usr1 0 usr2 1"));
}

TEST(Signals, CanBeInvented) {
  GdbSession gdb{on("signals")};
  gdb.run_all({"handle SIGUSR1 SIGUSR2 SIG34 nostop noprint pass", "break send_value", "continue"});
  gdb.run_all({"delete", "break on_usr2"});
  EXPECT_THAT(gdb.run("signal SIGUSR2"), HasSubstr("on_usr2 (number=12)"));
  EXPECT_THAT(gdb.run("backtrace"), HasSubstr("<signal handler called>"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 026"));
}

TEST(Signals, CanBeReplacedByNothing) {
  GdbSession gdb{on("signals")};
  gdb.run_all({"handle SIGUSR2 SIG34 nostop noprint pass", "continue"});
  gdb.run_all({"tbreak send_value", "signal 0"});
  EXPECT_EQ(gdb.value("usr1"), "0");
}

TEST(Signals, QueuedOneArrivesAfterTheNextResume) {
  GdbSession gdb{on("signals")};
  gdb.run_all({"handle SIGUSR1 SIGUSR2 SIG34 nostop noprint pass", "break send_value", "continue"});
  gdb.run_all({"delete", "queue-signal SIGUSR2", "tbreak on_usr2"});
  EXPECT_THAT(gdb.run("continue"), HasSubstr("on_usr2"));
}

TEST(Signals, StepIntoTheHandler) {
  GdbSession gdb{on("signals")};
  gdb.run_all({"handle SIGUSR1 stop print pass", "continue"});
  gdb.run("stepi");
  EXPECT_THAT(gdb.run("info symbol $pc"), HasSubstr("on_usr1"));
}

TEST(Signals, CanBeInventedAtABreakpointOfARecordedThread) {
  // While the thread blocks signals, stepping changes its action for SIGTRAP; this stop restores
  // the action.
  GdbSession gdb{on("catches_traps")};
  gdb.run_all({"break main", "continue", "record btrace", "tbreak work", "continue"});
  EXPECT_EQ(gdb.value("$_siginfo.si_signo"), "5");
  EXPECT_EQ(gdb.value("$_siginfo.si_code"), "128");  // SI_KERNEL
  gdb.run("break on_wish");
  EXPECT_THAT(gdb.run("signal SIGUSR1"), HasSubstr("on_wish (number=10)"));
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 01]"));
}

TEST(Signals, SiginfoTellsTheSender) {
  GdbSession gdb{on("signals")};
  gdb.run_all({"handle SIGUSR1 SIGUSR2 nostop noprint pass", "continue"});
  EXPECT_EQ(gdb.value("$_siginfo.si_signo"), "34");
  EXPECT_EQ(gdb.value("$_siginfo._sifields._rt.si_sigval.sival_int"), "42");
  // The handler sees the values that gdb writes.
  gdb.run("print $_siginfo._sifields._rt.si_sigval.sival_int = 17");
  gdb.run("handle SIGUSR1 nostop noprint pass");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 025"));
  EXPECT_TRUE(gdb.wait_for_server("values 17"));
}

TEST(Signals, FaultsShowTheirAddress) {
  GdbSession gdb{on("exits", {"segv"})};
  EXPECT_THAT(gdb.run("continue"), AllOf(HasSubstr("SIGSEGV"), HasSubstr("crash ()")));
  EXPECT_THAT(gdb.run("print $_siginfo._sifields._sigfault.si_addr"), HasSubstr("0x0"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("terminated with signal SIGSEGV"));
}

TEST(Signals, StopInAHandlerAndReturn) {
  GdbSession gdb{on("signals")};
  gdb.run_all({"handle SIGUSR1 SIGUSR2 SIG34 nostop noprint pass", "break on_value", "continue"});
  EXPECT_THAT(gdb.run("up"), HasSubstr("<signal handler called>"));
  gdb.run("down");
  EXPECT_THAT(gdb.run("finish"), HasSubstr("<signal handler called>"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 025"));
}

}  // namespace
}  // namespace backtrail::test
