// SPDX-License-Identifier: Apache-2.0
// `record btrace` and gdb's commands on the history, on one thread.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptrace/source/probe.hpp"
#include "test/gdb/on_program.hpp"
#include "test/gdb/trace_oracle.hpp"
#include "test/support/machine.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Btrace : public ::testing::TestWithParam<Recording> {
 protected:
  /// Records the program `calls` from touch_global to all_done.
  void record_calls() {
    gdb.run_all({"break touch_global", "continue", "delete"});
    ASSERT_THAT(gdb.run(GetParam().command()), IsEmpty());
    gdb.run("break all_done");
    ASSERT_THAT(gdb.run("continue"), HasSubstr("all_done"));
  }

  GdbSession gdb{by(GetParam().source, on("calls"))};
};

INSTANTIATE_TEST_SUITE_P(Gdb, Btrace, recordings(),
                         [](const auto& test) { return std::string{test.param.name}; });

TEST_P(Btrace, InfoRecordNamesFormatAndSize) {
  record_calls();
  const bool bts = std::string_view{GetParam().format} == "bts";
  EXPECT_THAT(gdb.run("info record"),
              AllOf(HasSubstr("Active record target: record-btrace"),
                    HasSubstr(bts ? "Recording format: Branch Trace Store."
                                  : "Recording format: Intel Processor Trace."),
                    HasSubstr(bts ? "Buffer size: 64kB." : "Buffer size: 16kB."),
                    ContainsRegex("Recorded [1-9][0-9]+ instructions in [1-9][0-9]* functions"),
                    HasSubstr("(0 gaps)")));
}

TEST_P(Btrace, FunctionHistoryShowsCallsInOrder) {
  record_calls();
  const std::string calls = gdb.run("record function-call-history 1,7");
  EXPECT_THAT(calls, ContainsRegex("1\ttouch_global\n2\tmain\n3\tmoved\n4\tmain\n5\t"));
  EXPECT_THAT(gdb.run("record function-call-history /l 1,3"),
              ContainsRegex("moved\t.*calls.c:[0-9]+,[0-9]+"));
  EXPECT_THAT(gdb.run("record function-call-history /c 1,3"), HasSubstr("\tmain\n3\t  moved"));
}

TEST_P(Btrace, InstructionHistoryShowsCodeAndSource) {
  record_calls();
  const std::string plain = gdb.run("record instruction-history 1,4");
  EXPECT_EQ(count(plain, "<touch_global+"), 4) << plain;
  EXPECT_THAT(plain, HasSubstr("mov    0x"));
  EXPECT_THAT(gdb.run("record instruction-history /s 1,4"), HasSubstr("global += 1;"));
  EXPECT_THAT(gdb.run("record instruction-history /m 1,4"), HasSubstr("touch_global"));
  EXPECT_THAT(gdb.run("record instruction-history /r 1,1"), ContainsRegex("8b 05"));
}

TEST_P(Btrace, ReverseFinishAndReverseStep) {
  record_calls();
  EXPECT_THAT(gdb.run("reverse-finish"), HasSubstr("all_done();"));
  EXPECT_THAT(gdb.run("reverse-next"), HasSubstr("printf(\"global"));
  EXPECT_THAT(gdb.run("reverse-next"), HasSubstr("printf(\"fib"));
  // Steps into the last call made from there.
  gdb.run("record goto begin");
  EXPECT_THAT(gdb.run("step"), HasSubstr("global += 1;"));
}

TEST_P(Btrace, ReverseStepEntersWhatWasCalled) {
  record_calls();
  gdb.run("tbreak moved");
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("moved ("));
  EXPECT_THAT(gdb.run("finish"), HasSubstr("main"));
  EXPECT_THAT(gdb.run("reverse-step"), HasSubstr("moved ("));
  EXPECT_THAT(gdb.run("backtrace"), ContainsRegex("#0 .*moved.*\n#1 .*main"));
}

TEST_P(Btrace, ReverseContinueEndsWhereTheTraceBegins) {
  record_calls();
  EXPECT_THAT(gdb.run("reverse-continue"), AllOf(at_an_end(), HasSubstr("touch_global")));
  EXPECT_THAT(gdb.run("reverse-stepi"), at_an_end());
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), at_an_end());
  EXPECT_THAT(gdb.run("info record"), Not(HasSubstr("Replay in progress")));
}

TEST_P(Btrace, ReverseContinueStopsAtBreakpoints) {
  record_calls();
  gdb.run("break fib");
  for (int i = 0; i < 5; ++i) EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr(", fib ("));
  gdb.run("delete");
  gdb.run("break twice");
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr(", twice ("));
  EXPECT_THAT(gdb.run("continue"), at_an_end());
}

TEST_P(Btrace, GotoMovesInTheTrace) {
  record_calls();
  EXPECT_THAT(gdb.run("record goto begin"), HasSubstr("touch_global"));
  EXPECT_THAT(gdb.run("info record"), HasSubstr("Replay in progress.  At instruction 1."));
  EXPECT_THAT(gdb.run("record goto 12"), HasSubstr("#0"));
  EXPECT_THAT(gdb.run("info record"), HasSubstr("At instruction 12."));
  EXPECT_THAT(gdb.run("record goto 99999999"), HasSubstr("No such instruction"));
  EXPECT_THAT(gdb.run("record goto end"), HasSubstr("all_done"));
  EXPECT_EQ(gdb.value("global"), "9");
}

TEST_P(Btrace, SteppingForwardInReplayIsStepping) {
  record_calls();
  gdb.run_all({"delete", "record goto begin"});
  EXPECT_THAT(gdb.run("finish"), HasSubstr("main"));
  EXPECT_THAT(gdb.run("next"), HasSubstr("strcpy"));
  EXPECT_THAT(gdb.run("next"), HasSubstr("twice(add, p.x, p.y)"));
  EXPECT_THAT(gdb.run("step"), HasSubstr("twice ("));
  EXPECT_THAT(gdb.run("reverse-finish"), HasSubstr("main"));
}

TEST_P(Btrace, NewExecutionIsAddedAtTheEnd) {
  record_calls();
  const RecordedCounts before = recorded_counts(gdb);
  gdb.run("stepi 3");
  EXPECT_EQ(recorded_counts(gdb).instructions, before.instructions + 3);
  gdb.run("next");
  EXPECT_GT(recorded_counts(gdb).instructions, before.instructions + 3);
}

TEST_P(Btrace, StopAndStartAgain) {
  record_calls();
  EXPECT_THAT(gdb.run("record stop"), HasSubstr("Process record is stopped"));
  EXPECT_THAT(gdb.run("info record"), HasSubstr("No recording is currently active"));
  EXPECT_THAT(gdb.run(GetParam().command()), IsEmpty());
  EXPECT_THAT(gdb.run("record btrace"), HasSubstr("already being recorded"));
  gdb.run("next");
  EXPECT_GT(recorded_counts(gdb).instructions, 0U);
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("global 9 text after"));
}

TEST_P(Btrace, ToTheEndOfTheProgram) {
  record_calls();
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.quit());
}

TEST_P(Btrace, KillAndDetachWhileRecording) {
  record_calls();
  EXPECT_THAT(gdb.run("detach"), HasSubstr("Detaching"));
  EXPECT_TRUE(gdb.wait_for_server("global 9 text after"));
}

TEST_P(Btrace, CallsMadeByGdbDoNotBreakIt) {
  record_calls();
  gdb.run("delete");
  EXPECT_EQ(gdb.value("add(2, 3)"), "5");
  gdb.run("next");
  const RecordedCounts counts = recorded_counts(gdb);
  EXPECT_GT(counts.instructions, 0U);
  EXPECT_THAT(gdb.run("record function-call-history"), Not(HasSubstr("rror")));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST_P(Btrace, WatchpointsStopWhileRecording) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  gdb.run_all({"break main", "continue", GetParam().command()});
  gdb.run("watch global");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("New value = 8"));
  EXPECT_THAT(gdb.run("record function-call-history -,+3"), Not(HasSubstr("rror")));
  EXPECT_THAT(gdb.run("reverse-finish"), HasSubstr("touch_global"));
}

TEST_P(Btrace, BuffersOfAskedSizes) {
  gdb.run_all({"break main", "continue"});
  const std::string format = GetParam().format;
  for (const char* size : {"1", "8192", "1048576"}) {
    gdb.run("set record btrace " + format + " buffer-size " + size);
    EXPECT_THAT(gdb.run("record btrace " + format), IsEmpty());
    const std::string_view expected = std::string_view{size} == "1"      ? "4kB."
                                      : std::string_view{size} == "8192" ? "8kB."
                                                                         : "1MB.";
    EXPECT_THAT(gdb.run("info record"), HasSubstr(expected));
    gdb.run("record stop");
  }
}

TEST(BtraceHardware, ThatIsNotThereIsExplainedAsDoctorDoes) {
  using tracee::SourceKind;
  for (const SourceKind kind : {SourceKind::kPerfPt, SourceKind::kPerfBts, SourceKind::kLbr}) {
    const auto probe = tracee::probe_source(kind, tracee::read_machine_facts());
    if (probe.available) continue;
    GdbSession gdb{by(to_string(kind), on("calls"))};
    for (const char* format : {"bts", "pt"}) {
      EXPECT_THAT(gdb.run(std::string{"record btrace "} + format), HasSubstr(probe.words()));
    }
  }
}

TEST(BtraceDefault, AStoreBesidesGdbsHistory) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break touch_global", "continue", "delete"});
  EXPECT_THAT(gdb.run("monitor bts size"), HasSubstr("Operation not supported"));
  EXPECT_THAT(gdb.run("record btrace bts"), IsEmpty());
  EXPECT_THAT(gdb.run("monitor bts size"), HasSubstr("No such device or address"));
  EXPECT_THAT(gdb.run("monitor bts config size=48"), HasSubstr("size 48 bytes, 0 records"));
  gdb.run("break all_done");
  gdb.run("continue");
  EXPECT_THAT(gdb.run("monitor bts size"), HasSubstr("2 records"));
  EXPECT_THAT(gdb.run("monitor bts get 0"), ContainsRegex("branch  0x[0-9a-f]+ -> 0x[0-9a-f]+"));
  EXPECT_THAT(gdb.run("monitor bts get 2"), HasSubstr("Invalid argument"));
  EXPECT_THAT(gdb.run("monitor bts drain"), HasSubstr("2 records"));
  EXPECT_THAT(gdb.run("record function-call-history"), HasSubstr("all_done"));
  gdb.run("record stop");
  EXPECT_THAT(gdb.run("monitor bts size"), HasSubstr("Operation not supported"));
  EXPECT_THAT(gdb.run("monitor bts process size"), HasSubstr("Operation not supported"));
}

TEST(BtraceDefault, NeedsNoFormat) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  EXPECT_THAT(gdb.run("record btrace"), IsEmpty());
  gdb.run_all({"break all_done", "continue"});
  EXPECT_GT(recorded_counts(gdb).instructions, 1000U);
}

TEST(BtraceDefault, FromTheFirstInstruction) {
  GdbSession gdb{on("calls_static")};
  EXPECT_THAT(gdb.run("record btrace bts"), IsEmpty());
  gdb.run_all({"break main", "continue"});
  EXPECT_GT(recorded_counts(gdb).instructions, 1000U);
  EXPECT_THAT(gdb.run("reverse-stepi"), Not(HasSubstr("No more")));
}

TEST(BtraceDefault, BackwardsFromACrash) {
  GdbSession gdb{on("exits", {"segv"})};
  gdb.run_all({"break main", "continue", "record btrace"});
  EXPECT_THAT(gdb.run("continue"), HasSubstr("SIGSEGV"));
  EXPECT_THAT(gdb.run("reverse-stepi"), HasSubstr("*nowhere = 1;"));
  EXPECT_THAT(gdb.run("reverse-finish"), HasSubstr("main"));
}

TEST(BtraceDefault, ExceptionsAreSeen) {
  GdbSession gdb{on("throws")};
  gdb.run_all({"set record btrace bts buffer-size 67108864", "break catcher", "continue",
               "record btrace bts", "break handled", "continue"});
  const RecordedCounts counts = recorded_counts(gdb);
  EXPECT_EQ(counts.gaps, 0U);
  const std::string calls =
      gdb.run(fmt::format("record function-call-history 1,{}", counts.functions));
  EXPECT_THAT(calls, AllOf(HasSubstr("\tthrower(int)\n"), HasSubstr("_Unwind_RaiseException"),
                           HasSubstr("Guard::~Guard()"), HasSubstr("__cxa_begin_catch")));
}

TEST(BtraceDefault, HandlersAreSeen) {
  GdbSession gdb{on("jumps")};
  gdb.run_all({"handle SIGUSR1 nostop noprint pass", "break signal_self", "continue",
               "record btrace bts", "break finished", "continue"});
  const RecordedCounts counts = recorded_counts(gdb);
  EXPECT_THAT(gdb.run(fmt::format("record function-call-history 1,{}", counts.functions)),
              ContainsRegex("signal_self\n(.*\n)*[0-9]+\ton_signal\n(.*\n)*[0-9]+\tsignal_self"));
}

}  // namespace
}  // namespace backtrail::test
