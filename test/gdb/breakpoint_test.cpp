// SPDX-License-Identifier: Apache-2.0
// Breakpoints and watchpoints of every kind.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"
#include "test/support/machine.hpp"
#include "test/support/subprocess.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Breakpoints, ConditionsAndCounts) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break add if a == 2", "continue"});
  EXPECT_EQ(gdb.value("a"), "2");
  gdb.run_all({"delete", "break fib", "ignore 2 40", "continue"});
  EXPECT_THAT(gdb.run("info breakpoints"), HasSubstr("already hit 41 times"));
}

TEST(Breakpoints, TemporaryOnesStopOnce) {
  GdbSession gdb{on("calls")};
  gdb.run("tbreak add");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Temporary breakpoint 1, add (a=0"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(Breakpoints, CommandsRunAtTheStop) {
  GdbSession gdb{on("calls")};
  gdb.run("break add\ncommands\nsilent\nprintf \"add %d %d\\n\", a, b\ncontinue\nend");
  EXPECT_THAT(gdb.run("continue"),
              AllOf(HasSubstr("add 0 7\nadd 1 7\nadd 2 7\n"), HasSubstr("exited normally")));
}

TEST(Breakpoints, DprintfPrints) {
  GdbSession gdb{on("calls")};
  gdb.run("dprintf touch_global,\"global is %d\\n\", global");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("global is 7\n"));
}

TEST(Breakpoints, HideTheirBytes) {
  GdbSession gdb{on("calls")};
  gdb.run("set breakpoint always-inserted on");
  const std::string before = gdb.run("x/8xb add");
  gdb.run_all({"break *add", "continue"});
  EXPECT_EQ(gdb.run("x/8xb add"), before);
  EXPECT_THAT(gdb.run("x/i add"), HasSubstr("push   %rbp"));
}

TEST(Breakpoints, HardwareOnesStop) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{on("calls")};
  gdb.run("hbreak add");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Breakpoint 1, add (a=0, b=7)"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Breakpoint 1, add (a=1, b=7)"));
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(Breakpoints, OnlyFourDebugRegisters) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{on("calls")};
  gdb.run_all({"hbreak add", "hbreak fib", "hbreak twice", "hbreak moved", "hbreak touch_global"});
  EXPECT_THAT(gdb.run("continue"),
              AnyOf(HasSubstr("Could not insert hardware breakpoint"),
                    HasSubstr("Cannot insert hardware breakpoint 5:Remote failure reply: no debug "
                              "register of the CPU is free: delete a hardware breakpoint")));
  gdb.run("delete 5");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Breakpoint 1, add"));
}

TEST(Watchpoints, ReportWrites) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  EXPECT_THAT(gdb.run("watch global"), HasSubstr("Hardware watchpoint 2: global"));
  EXPECT_THAT(gdb.run("continue"), AllOf(HasSubstr("Old value = 7"), HasSubstr("New value = 8"),
                                         HasSubstr("touch_global")));
  EXPECT_THAT(gdb.run("continue"), AllOf(HasSubstr("Old value = 8"), HasSubstr("New value = 9")));
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(Watchpoints, ReportReadsAndWrites) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  EXPECT_THAT(gdb.run("awatch global"), HasSubstr("Hardware access (read/write) watchpoint"));
  EXPECT_THAT(gdb.run("continue"), AllOf(HasSubstr("Value = 7"), HasSubstr("main")));
}

TEST(Watchpoints, ReadOnesIgnoreUnchangedWrites) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  EXPECT_THAT(gdb.run("rwatch corner.y"), HasSubstr("Hardware read watchpoint"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Value = 4"));
}

TEST(Watchpoints, LocalsEndWithTheirFrame) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{on("calls")};
  gdb.run_all({"break twice", "continue", "watch first"});
  EXPECT_THAT(gdb.run("continue"), HasSubstr("New value = 31"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Watchpoint 2 deleted because"));
}

TEST(Watchpoints, CoverWideObjects) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  EXPECT_THAT(gdb.run("watch text"), HasSubstr("Hardware watchpoint 2: text"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("New value = \"after"));
}

TEST(Watchpoints, HoldInEveryThread) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{on("threads")};
  gdb.run_all({"break main", "continue", "watch results[2]"});
  EXPECT_THAT(gdb.run("continue"), HasSubstr("New value = 12"));
  EXPECT_EQ(gdb.value("number"), "2");
}

/// Checks the condition on which these tests are skipped: gdb alone must agree with it.
TEST(DebugRegisters, TrapWhereTheyDoForGdbAlone) {
  Subprocess gdb{{.arguments = {"gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off",
                                "-ex", "break main", "-ex", "run", "-ex", "hbreak add", "-ex",
                                "continue", inferior("calls")},
                  .environment = test_environment(),
                  .working_directory = {}}};
  gdb.close_input();
  ASSERT_TRUE(gdb.wait(deadline_in(std::chrono::seconds{60})));
  gdb.output().drain();
  const std::string& said = gdb.output().text();
  ASSERT_THAT(said, HasSubstr("Hardware assisted breakpoint 2")) << said;
  EXPECT_EQ(said.find("Breakpoint 2, add (a=0, b=7)") != std::string::npos,
            tracee::debug_registers_trap())
      << said;
}

TEST(Watchpoints, AreRefusedWhereTheyWouldNeverBeHit) {
  if (tracee::debug_registers_trap()) GTEST_SKIP() << "the debug registers of this machine trap";
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue", "watch global"});
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Could not insert hardware watchpoint 2"));
  EXPECT_TRUE(gdb.wait_for_server("the debug registers of this machine do not trap"));
  gdb.run("delete 2");
  EXPECT_THAT(gdb.run("hbreak add"), HasSubstr("Hardware assisted breakpoint"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Cannot insert hardware breakpoint 3"));
  gdb.run("delete 3");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(Watchpoints, SoftwareOnesStepThrough) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break touch_global", "continue", "set can-use-hw-watchpoints 0", "watch global"});
  EXPECT_THAT(gdb.run("continue"), HasSubstr("New value = 8"));
}

}  // namespace
}  // namespace backtrail::test
