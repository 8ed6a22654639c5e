// SPDX-License-Identifier: Apache-2.0
// The end of a recorded thread: records without a reader are not decoded; listeners get all.

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "test/support/own_reads.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kHistoryBytes = 64ULL << 10;
/// Needlessly decoding a full log for a history of that size takes some hundred thousand reads.
constexpr std::uint64_t kFewReads = 30'000;

/// A program with several recorded threads that has logged millions of branches.
class Ended : public testing::TestWithParam<TraceFormat> {
 protected:
  void SetUp() override {
    if (!test::own_reads()) GTEST_SKIP() << "the kernel does not count reads (/proc/self/io)";
    pid_ = driver_.launch("busy", {"4"});
    driver_.engine.set_reported({.threads = true});
    enable({pid_, pid_});
    ASSERT_TRUE(driver_.engine.insert(
        pid_, {.kind = BreakpointKind::kSoftware, .address = symbol_of("busy", "mark")}));
    const TraceeAddr done = symbol_of("busy", "done");
    ASSERT_TRUE(driver_.engine.insert(pid_, {.kind = BreakpointKind::kSoftware, .address = done}));
    for (;;) {
      const auto event = driver_.run();
      ASSERT_TRUE(event);
      if (event->kind == StopKind::kThreadCreated) enable(event->thread);
      if (event->kind != StopKind::kSoftwareBreakpoint) continue;
      // If the breakpoint stayed, threads would be stepped past it again and again.
      const auto pc = driver_.engine.find(event->thread)->pc();
      ASSERT_TRUE(pc);
      if (*pc == done) break;
      ASSERT_TRUE(driver_.engine.remove(pid_, {.kind = BreakpointKind::kSoftware, .address = *pc}));
    }
    reads_before_ = test::own_reads().value_or(0);
  }
  void enable(ThreadId id) {
    EXPECT_TRUE(
        driver_.engine.enable_trace(id, {.format = GetParam(), .size_bytes = kHistoryBytes}));
  }
  void expect_few_reads() const {
    EXPECT_LT(test::own_reads().value_or(0) - reads_before_, kFewReads);
  }
  /// Runs to the end of the process.
  void run_out() {
    std::optional<StopEvent> event;
    do {
      event = driver_.run();
      ASSERT_TRUE(event);
    } while (event->kind != StopKind::kProcessExited && event->kind != StopKind::kProcessSignalled);
  }

  EngineDriver driver_{SourceKind::kCache};
  pid_t pid_ = 0;
  std::uint64_t reads_before_ = 0;
};

TEST_P(Ended, ByTheClientCostsLittle) {
  ASSERT_TRUE(driver_.engine.kill(pid_));
  expect_few_reads();
}

TEST_P(Ended, ByItselfCostsLittle) {
  const TraceeAddr done = symbol_of("busy", "done");
  ASSERT_TRUE(driver_.engine.remove(pid_, {.kind = BreakpointKind::kSoftware, .address = done}));
  run_out();
  expect_few_reads();
}

TEST_P(Ended, BySomebodyElseCostsLittle) {
  ::kill(pid_, SIGKILL);
  run_out();
  expect_few_reads();
}

TEST_P(Ended, ByDetachingCostsLittle) {
  ASSERT_TRUE(driver_.engine.detach(pid_));
  expect_few_reads();
  ::kill(pid_, SIGKILL);
}

TEST_P(Ended, ByTheEndOfRecordingCostsLittle) {
  std::vector<ThreadId> threads;
  for (const auto& thread : driver_.engine.find(pid_)->threads()) threads.push_back(thread->id());
  for (const ThreadId& id : threads) ASSERT_TRUE(driver_.engine.disable_trace(id));
  expect_few_reads();
}

std::string name_of(const testing::TestParamInfo<TraceFormat>& tested) {
  return tested.param == TraceFormat::kPt ? "Pt" : "Bts";
}

INSTANTIATE_TEST_SUITE_P(Formats, Ended, testing::Values(TraceFormat::kPt, TraceFormat::kBts),
                         name_of);

/// Returns the records of the program's last branches that a listener gets. @param stops_before_end
/// Stop the thread just before its end and hand on its records there.
std::vector<decoder::Record> last_records(bool stops_before_end) {
  Collector collector;
  EngineDriver driver{SourceKind::kCache};
  driver.engine.set_reported({.exits = stops_before_end});
  const pid_t pid = driver.launch("busy");
  const ThreadId id{pid, pid};
  const TraceeAddr done = symbol_of("busy", "done");
  EXPECT_TRUE(driver.engine.enable_trace(id, {.size_bytes = kHistoryBytes}));
  const BreakpointSpec last{.kind = BreakpointKind::kSoftware, .address = done};
  EXPECT_TRUE(driver.engine.insert(pid, last));
  EXPECT_TRUE(driver.run());
  EXPECT_TRUE(driver.engine.remove(pid, last));
  Thread* thread = driver.engine.find(id);
  if (thread == nullptr || !thread->trace()) return {};
  thread->trace()->flush();
  thread->trace()->hub().add(collector);
  for (;;) {
    const auto event = driver.run();
    if (!event || event->kind == StopKind::kProcessExited) return collector.all;
    if (event->kind != StopKind::kExiting) continue;
    driver.engine.find(id)->trace()->flush();
    driver.engine.find(id)->trace()->hub().remove(collector);
  }
}

TEST(EndedThread, ListenersThatStayGetEverything) {
  const std::vector<decoder::Record> whole = last_records(true);
  EXPECT_GT(whole.size(), 10U);
  EXPECT_EQ(last_records(false), whole);
}

/// The program executes itself three times. No consumer reads its records, so no exec may decode
/// the log.
TEST(EndedThread, AnExecIsNoReasonToDecodeEither) {
  const auto before = test::own_reads();
  if (!before) GTEST_SKIP() << "the kernel does not count reads (/proc/self/io)";
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("exec_among", {"3"});
  ASSERT_TRUE(driver.engine.enable_trace(
      {pid, pid}, {.format = TraceFormat::kPt, .size_bytes = kHistoryBytes}));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  // The other threads branch until the exec, which takes the longer the busier the machine is.
  EXPECT_LT(test::own_reads().value_or(0) - *before, 4 * kFewReads);
}

}  // namespace
}  // namespace backtrail::tracee
