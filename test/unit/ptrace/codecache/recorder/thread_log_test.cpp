// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/thread_log.hpp"

#include <cstring>

#include "decoder/trace/trace_consumer.hpp"
#include "test/unit/ptrace/codecache/recorder/stopped_child.hpp"

namespace backtrail::tracee::cache {
namespace {

struct NoConsumer final : decoder::TraceConsumer {
  void consume(std::span<const decoder::Record>) override {}
};

struct ThreadLogTest : ::testing::Test {
  /// The thread logs `count` further entries; returns its log pointer.
  TraceeAddr log_entries(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, written += sizeof(std::uint32_t)) {
      constexpr std::uint32_t kEntry = 1;
      std::memcpy(memory.log().host + written, &kEntry, sizeof kEntry);
    }
    return memory.log_begin() + written;
  }

  StoppedChild child;
  ThreadMemory memory = child.take_space();
  CacheSpace& space = *child.process().cache_space;
  NoConsumer consumer;
  std::size_t written = 0;
};

TEST_F(ThreadLogTest, CountsEntriesOverAllLogs) {
  ThreadLog log{consumer, {.history_bytes = 1 << 20}};
  EXPECT_FALSE(log.is_open());
  EXPECT_EQ(log.release(), nullptr);
  log.open(space, 0, memory);
  log.take(log_entries(3));
  EXPECT_EQ(log.entries_seen(), 3U);
  EXPECT_EQ(log.taken(), 0U) << "the next log begins";
  const auto released = log.release();
  ASSERT_NE(released, nullptr);
  EXPECT_EQ(released->numbers_seen(), 3U);
  EXPECT_EQ(log.entries_seen(), 3U);
  written = 0;
  log.take(log_entries(2));
  log.close();
  EXPECT_FALSE(log.is_open());
  EXPECT_EQ(log.entries_seen(), 5U);
}

TEST_F(ThreadLogTest, TellsWrittenEntriesOnlyWhenItStreams) {
  ThreadLog log{consumer, {.history_bytes = 1 << 20}};
  log.open(space, 0, memory);
  log_entries(3);
  EXPECT_EQ(log.new_entries(), 0U);
  written = 0;
  log.stream(/*is_stopped=*/true);
  EXPECT_TRUE(log.may_drain());
  EXPECT_EQ(log.release(), nullptr);
  EXPECT_EQ(log.new_entries(), 0U);
  log_entries(3);
  EXPECT_EQ(log.new_entries(), 2U) << "the newest is not final";
}

TEST_F(ThreadLogTest, StopsAThreadOftenIfNothingMayBeDropped) {
  const std::uint64_t whole = memory.log().bytes();
  ThreadLog log{consumer, {.history_bytes = 1 << 20, .keeps_all = true}};
  log.open(space, 0, memory);
  EXPECT_LT(memory.log().bytes(), whole);
  EXPECT_EQ(memory.log_end(), space.memory().thread(0).log_end());
  EXPECT_EQ(memory.log_begin(), space.memory().thread(0).log_begin());
}

}  // namespace
}  // namespace backtrail::tracee::cache
