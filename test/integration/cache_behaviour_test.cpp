// SPDX-License-Identifier: Apache-2.0
// The recorder must be invisible to the debugger and to the program while code runs from the cache.

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "elf_symbols.hpp"
#include "ptrace/os/procfs.hpp"
#include "test/support/effort.hpp"
#include "test/support/machine.hpp"
#include "trace_judge.hpp"

namespace backtrail::tracee {
namespace {

class CachePrograms : public testing::TestWithParam<const char*> {};

TEST_P(CachePrograms, FindEverythingAsItMustBe) {
  const Outcome outcome = run_recorded({.program = GetParam()});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
}

TEST_P(CachePrograms, FindEverythingAsItMustBeWhenInterruptedOften) {
  const Outcome outcome = run_recorded({.program = GetParam(), .stops = 300, .threads = true});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
}

/// The recorder loads what stores overwrite, and must not be seen where the load faults.
TEST_P(CachePrograms, FindEverythingAsItMustBeWhileOverwrittenBytesAreRecorded) {
  for (const int stops : {0, 100}) {
    const Outcome outcome = run_recorded(
        {.program = GetParam(), .stops = stops, .values = ValueDepth::kAll, .threads = true});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
  }
}

INSTANTIATE_TEST_SUITE_P(Hard, CachePrograms,
                         testing::Values("alignment", "coroutines", "faults", "filters", "flags",
                                         "handlers", "mapped_again", "maps_code", "masks",
                                         "mixed_threads", "own_steps", "restarts", "rewritten",
                                         "sandbox", "sections", "segments", "spawns",
                                         "trap_handlers"),
                         [](const auto& test) { return std::string{test.param}; });

TEST(CacheSource, ExecutesCodeAsCallsOfAnotherFormHaveMadeIt) {
  if (!test::has_compat_calls()) GTEST_SKIP() << test::kNoCompatCalls;
  for (const int stops : {0, 100}) {
    const Outcome outcome = run_recorded({.program = "other_calls", .stops = stops});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
    EXPECT_EQ(outcome.statistics.find("code outside files"), std::string::npos)
        << outcome.statistics;
  }
}

TEST(CacheSource, LeavesTranslatedCodeForAFilterThatJudgesAllThreads) {
  for (const int stops : {0, 30}) {
    const Outcome outcome = run_recorded({.program = "filters",
                                          .arguments = {"everybody"},
                                          .stops = stops,
                                          .threads = true,
                                          .collects = false,
                                          .statistics_every = 1});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
    EXPECT_EQ(outcome.statistics.find("stepping: "), std::string::npos) << outcome.statistics;
  }
}

TEST(StepSource, NoTrapFlagIsAmongFlagsThatArePushedWhileItIsInterrupted) {
  // A request to stop may arrive right after the step that pushed the flags.
  const Outcome outcome = run_recorded({.source = SourceKind::kStep,
                                        .program = "flags",
                                        .arguments = {"alone"},
                                        .stops = 600,
                                        .from = "push_and_pop"});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
}

TEST(CacheSource, KeepsAFullLogFromBlockedAndIgnoredSignals) {
  const Outcome outcome = run_recorded(
      {.program = "masks", .arguments = {"long"}, .collects = false, .statistics_every = 1});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.statistics;
  EXPECT_EQ(outcome.statistics.find(" 0 full logs"), std::string::npos) << outcome.statistics;
}

TEST(CacheSource, LeavesItsLogUndecodedWhereTheTrapsActionIsPutBack) {
  Collector records;
  std::size_t seen_at_end = 1;
  const Outcome outcome =
      run_recorded({.program = "trap_handlers", .at_stop = [&](EngineDriver&, Thread& thread) {
                      if (thread.status().signal != SIGINT) return;
                      seen_at_end = records.all.size();
                      const auto pc = thread.next_pc();
                      if (pc && seen_at_end == 0) thread.trace()->hub().add(records, *pc);
                    }});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
  // Each call of fib(12) has more branches than that. The start of a trace is reported at once.
  EXPECT_LT(seen_at_end, 100U);
}

TEST(CacheSource, StepsOverNothingButTheWayIntoAHandler) {
  constexpr int kSignals = test::kSanitized ? 100 : 500;
  for (const char* what : {"fault", "raise"}) {
    const Outcome outcome = run_recorded({.program = "storm",
                                          .arguments = {what, std::to_string(kSignals)},
                                          .collects = false,
                                          .statistics_every = 1});
    EXPECT_TRUE(outcome.exited_with(0)) << what << " " << outcome.statistics;
    const auto behind = outcome.statistics.find(" instructions stepped");
    ASSERT_NE(behind, std::string::npos) << outcome.statistics;
    const auto number = outcome.statistics.rfind(' ', behind - 1) + 1;
    EXPECT_LT(std::stoi(outcome.statistics.substr(number)), kSignals * 5 / 4)
        << what << " " << outcome.statistics;
  }
}

TEST(CacheSource, LosesNoBranchWhereATimerInterruptsHandlers) {
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("handlers", {"timers", "30"});
  const ThreadId id{pid, pid};
  ASSERT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 1U << 20U}));
  Thread& thread = *driver.engine.find(id);
  TraceJudge judge;
  JudgedTrace judged{thread.process(), judge};
  thread.trace()->hub().add(judged, thread.pc().value_or(TraceeAddr{}));
  driver.engine.set_pass_signals(all_signals());
  ASSERT_TRUE(driver.engine.insert(
      pid, {.kind = BreakpointKind::kSoftware, .address = symbol_of("handlers", "exit")}));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  thread.trace()->flush();
  EXPECT_EQ(judge.objections(), "");
  EXPECT_GT(judge.records(), 1000U);
  EXPECT_TRUE(driver.engine.kill(pid));
}

TEST(CacheSource, HasRoomForEveryThreadOfACrowd) {
  constexpr int kMostLooks = test::kSanitized ? 1 : 4;
  std::size_t threads = 0;
  int looks = 0;
  const Outcome outcome = run_recorded(
      {.program = "crowd", .threads = true, .at_stop = [&](EngineDriver&, Thread& first) {
         // Wait until almost all threads are there, and look only a few times: a look takes long.
         if (first.process().threads().size() < 290 || looks++ >= kMostLooks) return;
         for (const auto& thread : first.process().threads()) {
           if (!thread->stopped() || !thread->trace()) continue;
           const std::string text = thread->trace()->source().statistics();
           EXPECT_EQ(text.find("stepping: "), std::string::npos) << text;
           ++threads;
         }
       }});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
  EXPECT_GT(outcome.threads.size(), 256U);
  EXPECT_GT(threads, 0U);
}

TEST(CacheSource, StopsAtBreakpointsWhereverTheyAre) {
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("calls_no_pie");
  const ThreadId id{pid, pid};
  ASSERT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
  for (const char* function : {"main", "add", "touch_global", "all_done"}) {
    const TraceeAddr address = symbol_of("calls_no_pie", function);
    const BreakpointSpec spec{.kind = BreakpointKind::kSoftware, .address = address, .length = 1};
    ASSERT_TRUE(driver.engine.insert(pid, spec));
    const auto event = driver.run();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint) << function;
    EXPECT_EQ(driver.engine.find(id)->pc().value_or(TraceeAddr{}), address);
    ASSERT_TRUE(driver.engine.remove(pid, spec));
  }
  const auto end = driver.run();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessExited);
}

TEST(CacheSource, ReportsAWatchpointBehindTheInstructionThatWrote) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("calls_no_pie");
  const ThreadId id{pid, pid};
  ASSERT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
  const TraceeAddr global = symbol_of("calls_no_pie", "global");
  const TraceeAddr writer = symbol_of("calls_no_pie", "touch_global");
  ASSERT_TRUE(
      driver.engine.insert(pid, {.kind = BreakpointKind::kWrite, .address = global, .length = 4}));
  for (int write = 0; write < 2; ++write) {
    const auto event = driver.run();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kWatchpoint);
    const TraceeAddr pc = driver.engine.find(id)->pc().value_or(TraceeAddr{});
    EXPECT_GT(pc, writer);
    EXPECT_LT(pc, writer + 64);
  }
  ASSERT_TRUE(driver.run());
}

TEST(CacheSource, LeavesNothingMappedWhenRecordingEnds) {
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("spin");
  const ThreadId id{pid, pid};
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
    // The step lets the recorder map its memory; an interruption alone may come before any
    // progress.
    bool mapped = false;
    for (int stop = 0; stop < 1000 && !mapped; ++stop) {
      driver.resume(id, ResumeAction{.kind = ResumeKind::kStep});
      const auto stepped = driver.await();
      ASSERT_TRUE(stepped);
      ASSERT_EQ(stepped->kind, StopKind::kStep);
      driver.resume_all();
      driver.engine.interrupt();
      const auto event = driver.await();
      ASSERT_TRUE(event);
      ASSERT_EQ(event->kind, StopKind::kSignal);
      const auto recorded = ProcFs{}.read(pid, "maps");
      ASSERT_TRUE(recorded);
      mapped = recorded->find("memfd:backtrail") != std::string::npos;
    }
    EXPECT_TRUE(mapped);
    ASSERT_TRUE(driver.engine.disable_trace(id));
    const auto maps = ProcFs{}.read(pid, "maps");
    ASSERT_TRUE(maps);
    EXPECT_EQ(maps->find("memfd:backtrail"), std::string::npos) << *maps;
  }
  EXPECT_TRUE(driver.engine.kill(pid));
}

}  // namespace
}  // namespace backtrail::tracee
