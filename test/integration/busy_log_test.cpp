// SPDX-License-Identifier: Apache-2.0
// Threads that fill their logs again and again.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "ptrace/codecache/memory/spare_memory.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "test/support/effort.hpp"

namespace backtrail::tracee {
namespace {

struct Busy {
  std::vector<decoder::Record> newest;
  std::size_t areas = 0;
  bool exited = false;
};

/// Returns the first thread's newest records when it reaches done(). Stops every thread at each
/// mark().
Busy run_busy(std::uint64_t log_bytes, const std::vector<std::string>& arguments,
              std::shared_ptr<cache::SpareMemory> spare = nullptr) {
  Busy out;
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("busy", arguments);
  const ThreadId id{pid, pid};
  constexpr std::uint64_t kHistoryBytes = 1U << 16U;  // unused: no client asks for a history
  const TraceConfig config{
      .size_bytes = kHistoryBytes, .log_bytes = log_bytes, .spare = std::move(spare)};
  driver.engine.set_reported({.threads = true});
  EXPECT_TRUE(driver.engine.enable_trace(id, config));
  const TraceeAddr done = symbol_of("busy", "done");
  const BreakpointSpec mark{
      .kind = BreakpointKind::kSoftware, .address = symbol_of("busy", "mark"), .length = 1};
  const BreakpointSpec last{.kind = BreakpointKind::kSoftware, .address = done, .length = 1};
  EXPECT_TRUE(driver.engine.insert(pid, mark));
  EXPECT_TRUE(driver.engine.insert(pid, last));
  for (;;) {
    const auto event = driver.run();
    if (!event || event->kind == StopKind::kProcessExited) {
      out.exited = event && event->exit_code == 0;
      return out;
    }
    Thread* at = driver.engine.find(event->thread);
    if (at != nullptr && at->pc().value_or(TraceeAddr{}) == mark.address) {
      EXPECT_TRUE(driver.engine.remove(pid, mark));
      driver.resume(event->thread, {.kind = ResumeKind::kStep});
      EXPECT_TRUE(driver.await());
      EXPECT_TRUE(driver.engine.insert(pid, mark));
      continue;
    }
    if (event->kind == StopKind::kThreadCreated) {
      EXPECT_TRUE(driver.engine.enable_trace(event->thread, config));
    }
    if (event->thread != id || at == nullptr || at->pc().value_or(TraceeAddr{}) != done) continue;
    Thread* first = driver.engine.find(id);
    if (const auto& space = first->process().cache_space) {
      out.areas = space->memory().areas();
    }
    Collector collector;
    first->trace()->hub().add(collector, done);
    first->trace()->source().flush();
    out.newest = std::move(collector.all);
    first->trace()->hub().remove(collector);
    EXPECT_TRUE(driver.engine.remove(pid, last));
  }
}

constexpr std::uint64_t kSmall = 1ULL << 20;
constexpr std::uint64_t kLarge = (test::kSanitized ? 8ULL : 16ULL) << 20;

void expect_same_end(const Busy& one, const Busy& other) {
  // The last records are of the same work in all runs; earlier ones depend on the arguments.
  constexpr std::size_t kMostCompared = 5'000'000;
  const std::size_t count = std::min({one.newest.size(), other.newest.size(), kMostCompared});
  ASSERT_GT(count, kSmall / arch::x86::translate::kLogEntryBytes);
  // The oldest records may begin in the middle of a superblock.
  const auto tail = static_cast<std::ptrdiff_t>(count - 100);
  EXPECT_TRUE(std::equal(one.newest.end() - tail, one.newest.end(), other.newest.end() - tail));
}

TEST(BusyLog, HoldsWhatCopiesWouldHold) {
  const Busy copied = run_busy(kSmall, {});
  EXPECT_TRUE(copied.exited);
  EXPECT_EQ(copied.areas, 0U);
  const Busy held = run_busy(kLarge, {});
  EXPECT_TRUE(held.exited);
  EXPECT_EQ(held.areas, 1U);
  EXPECT_GT(held.newest.size(), kLarge / arch::x86::translate::kLogEntryBytes);
  expect_same_end(held, copied);
}

TEST(BusyLog, IsForTheFirstOfManyThreads) {
  const Busy alone = run_busy(kLarge, {});
  const Busy crowded = run_busy(kLarge, {"5", "crowd"});
  EXPECT_TRUE(crowded.exited);
  EXPECT_EQ(crowded.areas, cache::kMostAreas);
  expect_same_end(crowded, alone);
}

TEST(BusyLog, IsFollowedByThreadsInTheSameMemory) {
  const auto spare = std::make_shared<cache::SpareMemory>();
  const Busy alone = run_busy(kLarge, {}, spare);
  // Sixty threads need more parts than there are below all areas.
  for (const std::uint64_t log_bytes : {kSmall, kLarge}) {
    const Busy crowded = run_busy(log_bytes, {"0", "crowd"}, spare);
    EXPECT_TRUE(crowded.exited);
    expect_same_end(crowded, alone);
  }
}

TEST(BusyLog, IsNoMatterForTheProgramsSignals) {
  const Busy copied = run_busy(kSmall, {});
  for (const char* how : {"ignored", "blocked"}) {
    const Busy held = run_busy(kLarge, {"0", how});
    EXPECT_TRUE(held.exited) << how;
    EXPECT_EQ(held.areas, 1U) << how;
    expect_same_end(held, copied);
  }
}

}  // namespace
}  // namespace backtrail::tracee
