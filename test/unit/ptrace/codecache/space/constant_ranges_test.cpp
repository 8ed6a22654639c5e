// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/constant_ranges.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "arch/base/value_kind.hpp"
#include "decoder/trace/constant_memory.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::kConstantKind;
using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

/// A thread that is told of changes.
struct Listener {
  void hear(const ConstantRanges& ranges) { take(ranges.tell(told, kConstantKind)); }
  void hear_lost(const ConstantRanges& ranges) { take(ranges.tell_lost(told)); }
  void take(std::vector<decoder::ValueFact> facts) {
    count = facts.size();
    for (decoder::ValueFact& fact : facts) {
      fact.record = now;
      memory.take(fact);
    }
    ++now;
  }
  [[nodiscard]] bool knows(TraceeAddr address) const {
    return memory.bytes_at(now, address, 1) == 1;
  }

  ConstantRanges::Told told;
  decoder::ConstantMemory memory;
  std::uint64_t now = 0;
  std::size_t count = 0;
};

TEST(ConstantRanges, AThreadIsToldEachChangeOnce) {
  ConstantRanges ranges;
  Listener thread;
  ranges.set({{0x1000_ta, 0x4000_ta}, {0x8000_ta, 0x9000_ta}});
  thread.hear(ranges);
  EXPECT_TRUE(thread.knows(0x1000_ta) && thread.knows(0x3fff_ta) && thread.knows(0x8000_ta));
  EXPECT_FALSE(thread.knows(0x4000_ta));
  thread.hear(ranges);
  EXPECT_EQ(thread.count, 0U);
  ranges.lose(0x2000_ta, 0x3000_ta);
  thread.hear(ranges);
  EXPECT_EQ(thread.count, 1U);
  EXPECT_TRUE(thread.knows(0x1fff_ta) && thread.knows(0x3000_ta));
  EXPECT_FALSE(thread.knows(0x2000_ta));
}

TEST(ConstantRanges, WhatStaysConstantIsNotToldAgain) {
  ConstantRanges ranges;
  Listener thread;
  ranges.set({{0x1000_ta, 0x4000_ta}});
  thread.hear(ranges);
  ranges.lose(0x2000_ta, 0x3000_ta);
  ranges.set({{0x1000_ta, 0x5000_ta}});
  thread.hear(ranges);
  EXPECT_EQ(thread.memory.bytes_at(0, 0x1000_ta, 0x1000), 0x1000U);
  EXPECT_EQ(thread.memory.bytes_at(0, 0x2000_ta, 1), 0U);
  EXPECT_EQ(thread.memory.bytes_at(1, 0x1000_ta, 0x8000), 0x4000U);
  ranges.set({{0x3000_ta, 0x4000_ta}});
  thread.hear(ranges);
  EXPECT_FALSE(thread.knows(0x1000_ta) || thread.knows(0x4000_ta));
  EXPECT_TRUE(thread.knows(0x3000_ta));
}

/// While a thread runs, it may have executed the code that was there before.
TEST(ConstantRanges, OfLostMemoryAThreadIsToldAtAnyTime) {
  ConstantRanges ranges;
  Listener thread;
  ranges.set({{0x1000_ta, 0x4000_ta}});
  thread.hear(ranges);
  ranges.lose(0x2000_ta, 0x3000_ta);
  ranges.set({{0x1000_ta, 0x4000_ta}});
  thread.hear_lost(ranges);
  EXPECT_FALSE(thread.knows(0x2000_ta));
  thread.hear(ranges);
  EXPECT_TRUE(thread.knows(0x2000_ta));
  EXPECT_EQ(thread.memory.bytes_at(1, 0x2000_ta, 1), 0U);
}

TEST(ConstantRanges, WhoMissedManyChangesIsToldEverythingAnew) {
  ConstantRanges ranges;
  Listener thread;
  ranges.set({{0x1000_ta, 0x4000_ta}});
  thread.hear(ranges);
  for (int i = 0; i < 5000; ++i) {
    ranges.lose(0x2000_ta, 0x3000_ta);
    ranges.set({{0x1000_ta, 0x4000_ta}});
  }
  ranges.lose(0x3000_ta, 0x4000_ta);
  Listener running = thread;
  running.hear_lost(ranges);
  EXPECT_FALSE(running.knows(0x1000_ta));
  thread.hear(ranges);
  EXPECT_LT(thread.count, 8U);
  EXPECT_TRUE(thread.knows(0x1000_ta) && thread.knows(0x2000_ta));
  EXPECT_FALSE(thread.knows(0x3000_ta));
  EXPECT_EQ(thread.memory.bytes_at(0, 0x2000_ta, 1), 0U);
}

TEST(ConstantRanges, KnowsWhatItHas) {
  ConstantRanges ranges;
  EXPECT_FALSE(ranges.overlaps(0x0_ta, 0x9000_ta));
  ranges.set({{0x1000_ta, 0x4000_ta}});
  EXPECT_TRUE(ranges.overlaps(0x3fff_ta, 0x9000_ta));
  EXPECT_FALSE(ranges.overlaps(0x4000_ta, 0x9000_ta));
  EXPECT_FALSE(ranges.overlaps(0x0_ta, 0x1000_ta));
}

}  // namespace
}  // namespace backtrail::tracee::cache
