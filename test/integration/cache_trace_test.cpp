// The `cache` source against the `step` source, and against itself under disturbance.

#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "decoder/bts/branch_store.hpp"
#include "decoder/trace/trace_consumer.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/source/thread_trace.hpp"

namespace backtrail::tracee {
namespace {

class Collector : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override {
    all.insert(all.end(), records.begin(), records.end());
  }
  std::vector<decoder::Record> all;
};

struct Outcome {
  StopEvent end;
  std::vector<decoder::Record> records;
  std::string statistics;
};

/// Runs an inferior to its end. `stops`: how often it is interrupted on the way, as early and as
/// densely as the machine lets us.
Outcome run_traced(SourceKind source, const std::string& name, int stops = 0) {
  Outcome outcome;
  Collector collector;
  EngineDriver driver{source};
  const pid_t pid = driver.launch(name);
  const ThreadId id{pid, pid};
  EXPECT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
  Thread* thread = driver.engine.find(id);
  if (thread == nullptr || !thread->trace()) return outcome;
  thread->trace()->hub().add(collector, *thread->pc());
  int signal = 0;
  for (;;) {
    driver.resume(id, ResumeAction{.signal = signal});
    signal = 0;
    if (stops > 0) {
      --stops;
      driver.engine.interrupt();
    }
    const auto event = driver.await();
    if (!event) {
      ADD_FAILURE() << name << " does not end";
      return outcome;
    }
    outcome.end = *event;
    if (event->kind == StopKind::kProcessExited || event->kind == StopKind::kProcessSignalled)
      break;
    if (event->kind == StopKind::kSignal && event->signal != SIGINT) signal = event->signal;
    // What is pending when a program ends would be lost with it.
    thread->trace()->source().flush();
    outcome.statistics = thread->trace()->source().statistics();
  }
  outcome.records = std::move(collector.all);
  return outcome;
}

/// The step source may keep a last, incomplete batch to itself when the program ends.
constexpr std::size_t kLastBatch = 512;

class CacheTrace : public testing::TestWithParam<const char*> {};

TEST_P(CacheTrace, EqualsTheSteppedTraceRecordByRecord) {
  const Outcome stepped = run_traced(SourceKind::kStep, GetParam());
  const Outcome cached = run_traced(SourceKind::kCache, GetParam());
  EXPECT_EQ(cached.end.kind, stepped.end.kind);
  EXPECT_EQ(cached.end.exit_code, stepped.end.exit_code);
  ASSERT_GE(cached.records.size(), stepped.records.size());
  ASSERT_LE(cached.records.size(), stepped.records.size() + kLastBatch);
  for (std::size_t i = 0; i < stepped.records.size(); ++i) {
    ASSERT_EQ(cached.records[i], stepped.records[i])
        << "record " << i << ": " << cached.records[i].from.value() << " -> "
        << cached.records[i].to.value() << ", stepped " << stepped.records[i].from.value() << " -> "
        << stepped.records[i].to.value();
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, CacheTrace,
                         testing::Values("three_steps", "plain_static", "calls_static"));

class CacheUnderStops : public testing::TestWithParam<const char*> {};

TEST_P(CacheUnderStops, RecordsTheSameWhenInterruptedAnywhere) {
  const Outcome calm = run_traced(SourceKind::kCache, GetParam());
  const Outcome disturbed = run_traced(SourceKind::kCache, GetParam(), 400);
  EXPECT_EQ(disturbed.end.kind, calm.end.kind);
  EXPECT_EQ(disturbed.end.exit_code, calm.end.exit_code);
  ASSERT_EQ(disturbed.records.size(), calm.records.size());
  for (std::size_t i = 0; i < calm.records.size(); ++i) {
    ASSERT_EQ(disturbed.records[i], calm.records[i]) << "record " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, CacheUnderStops,
                         testing::Values("plain_static", "calls_static", "calls", "signals"));

TEST(CacheConsumers, SeeWhatEachWouldSeeAlone) {
  Collector all;
  decoder::BranchStore small;
  decoder::BranchStore first_ones;
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("calls");
  const ThreadId id{pid, pid};
  ASSERT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
  Thread* thread = driver.engine.find(id);
  ASSERT_TRUE(thread != nullptr && thread->trace());
  ASSERT_TRUE(small.config({.size_bytes = 100 * 24}));
  ASSERT_TRUE(
      first_ones.config({.size_bytes = 50 * 24, .overflow = decoder::StoreOverflow::kSignal}));
  thread->trace()->hub().add(all);
  thread->trace()->hub().add(small);
  thread->trace()->hub().add(first_ones);
  driver.resume(id, ResumeAction{});
  ASSERT_TRUE(driver.await());
  decoder::BranchStore small_alone;
  decoder::BranchStore first_alone;
  ASSERT_TRUE(small_alone.config({.size_bytes = 100 * 24}));
  ASSERT_TRUE(
      first_alone.config({.size_bytes = 50 * 24, .overflow = decoder::StoreOverflow::kSignal}));
  for (const decoder::Record& record : all.all) {
    small_alone.consume({&record, 1});
    first_alone.consume({&record, 1});
  }
  ASSERT_GT(all.all.size(), 200U);
  EXPECT_EQ(*small.drain(), *small_alone.drain());
  EXPECT_EQ(*first_ones.drain(), *first_alone.drain());
}

TEST(CacheSource, LeavesNothingMappedWhenRecordingEnds) {
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("spin");
  const ThreadId id{pid, pid};
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
    // After a step the memory can be made; an interruption alone may come before any progress.
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
