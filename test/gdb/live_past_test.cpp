// SPDX-License-Identifier: Apache-2.0
// Live programs go back without record btrace: `serve --from-start`, `monitor history on`.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"
#include "test/support/machine.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

GdbOptions from_start(GdbOptions options) {
  options.server_options.emplace_back("--from-start");
  return options;
}

/// Steps back by lines until a function shows; compilers split lines into a varying number of
/// parts.
std::string step_back_into(GdbSession& gdb, const std::string& function) {
  constexpr int kMostLines = 8;
  std::string said;
  for (int i = 0; i < kMostLines && said.find(function) == std::string::npos; ++i) {
    said = gdb.run("reverse-step");
  }
  return said;
}

GdbOptions lives_on(const std::vector<std::string>& arguments = {}) {
  GdbOptions options = on("lives_on", arguments);
  options.setup.emplace_back("handle SIGUSR1 nostop noprint");
  return options;
}

TEST(LivePastWithValues, SaysHowManyAreRecorded) {
  GdbOptions options = lives_on();
  options.server_options.insert(options.server_options.end(), {"--values", "most"});
  GdbSession gdb{std::move(options)};
  gdb.run_all({"break worked", "monitor history on"});
  EXPECT_THAT(gdb.run("monitor history"), HasSubstr(" 0 recorded values"));
  gdb.run("continue");
  EXPECT_THAT(gdb.run("monitor history"), ContainsRegex(" [1-9][0-9]* recorded values"));
}

class LivePastBySource : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Gdb, LivePastBySource, ::testing::Values("cache", "step"),
                         [](const auto& source) { return std::string{source.param}; });

TEST_P(LivePastBySource, ShowsVariablesAndRunsOn) {
  GdbSession gdb{by(GetParam(), from_start(lives_on()))};
  gdb.run_all({"break worked", "continue"});
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_THAT(gdb.run("bt"), AllOf(HasSubstr("#0"), HasSubstr("add_up"), HasSubstr("main")));
  EXPECT_EQ(gdb.value("count"), "4");
  EXPECT_EQ(gdb.value("numbers[2]"), "3");
  EXPECT_EQ(gdb.value("total"), "10");
  EXPECT_THAT(gdb.run("reverse-finish"), HasSubstr("main"));
  // No instruction of the program's read the variable before its first write.
  EXPECT_THAT(gdb.run("output total"), HasSubstr("annot access memory"));
  EXPECT_THAT(gdb.run("stepi"), HasSubstr("add_up"));
  EXPECT_THAT(gdb.run("continue"), AnyOf(at_an_end(), HasSubstr("Breakpoint 1, worked")));
  EXPECT_EQ(gdb.value("total"), "10");
  EXPECT_THAT(gdb.run("finish"), HasSubstr("main"));
  EXPECT_THAT(gdb.run("next"), HasSubstr("argc"));
  EXPECT_THAT(gdb.run("reverse-next"), HasSubstr("rest(sum"));
  EXPECT_THAT(gdb.run("continue"), at_an_end());
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  // The output came once.
  EXPECT_EQ(count(gdb.server_output(), "the sum is 15"), 1);
}

TEST(LivePast, StopsAtBreakpointsBothWays) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{from_start(lives_on())};
  gdb.run_all({"break worked", "continue", "break deeper", "hbreak on_signal"});
  for (const char* left : {"0", "1", "2", "3"}) {
    EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("Breakpoint 2, deeper"));
    EXPECT_EQ(gdb.value("left"), left);
  }
  EXPECT_THAT(gdb.run("bt"),
              AllOf(ContainsRegex("deeper .left=(left@entry=)?3"), HasSubstr("main")));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Breakpoint 2, deeper"));
  EXPECT_EQ(gdb.value("left"), "2");
  gdb.run("condition 2 left == 0");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Breakpoint 2, deeper"));
  EXPECT_EQ(gdb.value("left"), "0");
  EXPECT_THAT(gdb.run("continue"), AnyOf(at_an_end(), HasSubstr("Breakpoint 1, worked")));
  gdb.run("delete 2");
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("Breakpoint 3, on_signal"));
  gdb.run("delete");
  EXPECT_THAT(gdb.run("reverse-continue"), at_an_end());
  EXPECT_THAT(gdb.run("continue"), at_an_end());
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(LivePast, StopsWhereWatchedDataWasWritten) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  GdbSession gdb{from_start(lives_on())};
  gdb.run_all({"break worked", "continue", "watch total"});
  const std::vector<std::string> values{"10", "6", "3", "1"};
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    EXPECT_THAT(gdb.run("reverse-continue"),
                ContainsRegex("Old value = " + values[i] + "\nNew value = " + values[i + 1]));
    EXPECT_THAT(gdb.run("frame"), HasSubstr("add_up"));
  }
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("may have been written here"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("may have been written here"));
  EXPECT_THAT(gdb.run("continue"), ContainsRegex("Old value = 1\nNew value = 3"));
}

TEST(LivePast, HasInstructionsThatWereSteppedInCodeThatWasWritten) {
  GdbSession gdb{from_start(on("rewritten_code"))};
  gdb.run_all({"break write_addition if addend == 4", "continue", "finish", "tbreak *page"});
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Temporary breakpoint"));
  const std::string first = gdb.value("$pc");
  gdb.run_all({"stepi", "stepi"});
  for (int i = 0; i < 2; ++i) EXPECT_THAT(gdb.run("reverse-stepi"), Not(HasSubstr("gap")));
  EXPECT_EQ(gdb.value("$pc"), first);
  EXPECT_THAT(gdb.run("x/i $pc"), HasSubstr("mov "));
  EXPECT_EQ(gdb.value("$edi"), "6");
  EXPECT_THAT(gdb.run("reverse-stepi"), AllOf(HasSubstr("main"), Not(HasSubstr("gap"))));
}

TEST(LivePast, CannotBeChanged) {
  GdbSession gdb{from_start(lives_on())};
  gdb.run_all({"break worked", "continue", "reverse-stepi"});
  EXPECT_THAT(gdb.run("set var $rax = 1"), HasSubstr("the past cannot be changed"));
  EXPECT_THAT(gdb.run("set var total = 1"),
              AnyOf(HasSubstr("the past cannot be changed"), HasSubstr("annot access memory")));
  EXPECT_THAT(gdb.run("monitor history off"), HasSubstr("the past cannot be changed"));
  gdb.run("stepi");
  EXPECT_EQ(gdb.value("total"), "10");
}

/// The end does not tell what memory and registers were before the debugger changed them.
TEST(LivePast, IsUnknownBeforeTheDebuggersOwnChanges) {
  GdbSession gdb{from_start(lives_on())};
  gdb.run_all({"break worked", "continue", "set var total = 99"});
  EXPECT_EQ(gdb.value("total"), "99");
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_THAT(gdb.run("output total"), HasSubstr("annot access memory"));
  EXPECT_THAT(gdb.run("continue"), AnyOf(at_an_end(), HasSubstr("Breakpoint 1, worked")));
  gdb.run_all({"break *rest", "continue"});
  EXPECT_THAT(gdb.run("reverse-stepi"), HasSubstr("main"));
  EXPECT_EQ(gdb.value("total"), "99") << "since the change";
  gdb.run("stepi");
  EXPECT_EQ(gdb.value("deeper(2)"), "2");
  gdb.run("reverse-stepi");
  EXPECT_THAT(gdb.run("output total"), HasSubstr("annot access memory"));
}

TEST(LivePast, KeepsOutOfRecordBtrace) {
  GdbSession gdb{from_start(lives_on())};
  gdb.run_all({"break worked", "continue", "reverse-stepi"});
  EXPECT_THAT(gdb.run("record btrace"), HasSubstr("is in its past"));
  gdb.run("stepi");
  ASSERT_THAT(gdb.run("record btrace"), IsEmpty());
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_THAT(gdb.run("info args"), HasSubstr("<unavailable>"));
  gdb.run_all({"record goto end", "record stop"});
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_EQ(gdb.value("count"), "4");
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), at_an_end());
  ASSERT_THAT(gdb.run("record btrace pt"), IsEmpty());
  gdb.run_all({"tbreak rest", "continue", "record stop"});
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_EQ(gdb.value("count"), "4");
}

TEST_P(LivePastBySource, BeginsAtAnyMoment) {
  GdbSession gdb{by(GetParam(), lives_on())};
  EXPECT_THAT(gdb.run("monitor history"), HasSubstr("No history is recorded"));
  gdb.run_all({"break add_up", "continue"});
  EXPECT_THAT(gdb.run("reverse-stepi"),
              AllOf(HasSubstr("No history of this thread is recorded"), at_an_end()));
  EXPECT_THAT(gdb.run("monitor history on"), HasSubstr("The history of every thread"));
  gdb.run_all({"break worked", "continue"});
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_EQ(gdb.value("total"), "10");
  EXPECT_THAT(gdb.run("reverse-continue"), AnyOf(HasSubstr("Breakpoint 1, add_up"), at_an_end()));
  EXPECT_THAT(gdb.run("continue"), AnyOf(at_an_end(), HasSubstr("Breakpoint 2, worked")));
  EXPECT_THAT(gdb.run("monitor history off"), HasSubstr("No history is recorded"));
  EXPECT_THAT(gdb.run("reverse-stepi"), HasSubstr("No history of this thread is recorded"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

/// The child is let go and runs unseen: it might write the parent's memory.
TEST(LivePast, ShowsNoMemoryAfterAProcessWasLetGo) {
  GdbSession gdb{from_start(lives_on({"fork"}))};
  gdb.run_all({"break worked", "continue"});
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_THAT(gdb.run("output total"), HasSubstr("annot access memory"));
  EXPECT_THAT(gdb.run("monitor history"), HasSubstr("writable memory of the past is unknown"));
  gdb.run("break make_child");
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("make_child"));
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), at_an_end());
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(LivePast, BeginsAnewWithAnotherProgram) {
  GdbSession gdb{from_start(lives_on({"exec"}))};
  gdb.run_all({"catch exec", "continue"});
  EXPECT_THAT(gdb.run("reverse-stepi"), at_an_end());
  gdb.run_all({"break worked", "continue"});
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_EQ(gdb.value("total"), "10");
  gdb.run("delete");
  EXPECT_THAT(gdb.run("reverse-continue"), at_an_end());
  EXPECT_THAT(gdb.run("continue"), at_an_end());
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(LivePast, MovesEachThreadByItself) {
  GdbSession gdb{from_start(on("threads"))};
  gdb.run_all({"break everyone_worked", "continue", "delete", "thread 3", "break work"});
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("work (number="));
  EXPECT_THAT(gdb.run("thread"), HasSubstr("Current thread is 3"));
  EXPECT_THAT(gdb.run("thread 1"), HasSubstr("everyone_worked"));
  EXPECT_THAT(gdb.run("thread 3"), HasSubstr("work (number="));
  // A debugger that runs one thread alone believes that the others are where they were.
  gdb.run_all({"thread 1", "set scheduler-locking on"});
  EXPECT_THAT(gdb.run("stepi"), HasSubstr("is in its past"));
  gdb.run_all({"thread 3", "set scheduler-locking replay", "delete"});
  EXPECT_THAT(gdb.run("continue"), at_an_end());
  EXPECT_THAT(gdb.run("reverse-stepi"), Not(at_an_end()));
  gdb.run("thread 1");
  EXPECT_THAT(gdb.run("continue"), AllOf(HasSubstr("and so do threads that were in their past"),
                                         HasSubstr("exited normally")));
}

TEST(LivePast, HasTheWayIntoACrash) {
  GdbSession gdb{from_start(on("past"))};
  ASSERT_THAT(gdb.run("continue"), HasSubstr("SIGSEGV"));
  EXPECT_THAT(step_back_into(gdb, "add_up"), HasSubstr("add_up"));
  EXPECT_EQ(gdb.value("numbers[3]"), "4");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("received signal SIGSEGV"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("terminated with signal SIGSEGV"));
}

/// gdb forgets the signal when it moves.
TEST(LivePast, KeepsTheSignalAtItsEnd) {
  GdbOptions options = lives_on();
  options.setup.clear();
  GdbSession gdb{from_start(std::move(options))};
  ASSERT_THAT(gdb.run("continue"), HasSubstr("received signal SIGUSR1"));
  gdb.run_all({"reverse-stepi", "break main"});
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("Breakpoint 1, main"));
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("received signal SIGUSR1"));
  gdb.run_all({"break worked", "continue"});
  EXPECT_EQ(gdb.value("handled"), "1");
}

}  // namespace
}  // namespace backtrail::test
