// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/start_table.hpp"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

TEST(StartTable, HoldsWhatAMapHolds) {
  std::mt19937_64 random{3};
  std::map<TraceeAddr, std::uint32_t> expected;
  StartTable table;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    // Dense code, other modules, and addresses that no program has.
    const std::uint64_t base = (random() & 3U) * 0x7f00'0000'0000U;
    const TraceeAddr start{base + (random() & 0x1'ffffU)};
    expected[start] = i;
    table.at(start).block = i;
  }
  table.at(TraceeAddr{0}).first_exit = 5;
  table.at(TraceeAddr{~std::uint64_t{0}}).first_exit = 6;
  for (const auto& [start, block] : expected) {
    ASSERT_NE(table.find(start), nullptr);
    ASSERT_EQ(table.find(start)->block, block);
  }
  EXPECT_EQ(table.find(TraceeAddr{0})->first_exit, 5U);
  EXPECT_EQ(table.find(TraceeAddr{~std::uint64_t{0}})->first_exit, 6U);
  for (std::uint64_t at = 0x20'0000; at < 0x20'1000; ++at) {
    ASSERT_EQ(table.find(TraceeAddr{at}), nullptr);
  }
  EXPECT_EQ(table.find(StartTable::kNowhere), nullptr);
}

TEST(StartTable, IsEmptyAtFirstAndWhenCleared) {
  StartTable table;
  EXPECT_EQ(table.find(TraceeAddr{1}), nullptr);
  EXPECT_EQ(table.at(TraceeAddr{1}).block, StartTable::kNone);
  table.clear();
  EXPECT_EQ(table.find(TraceeAddr{1}), nullptr);
  EXPECT_TRUE(table.slots().empty());
}

}  // namespace
}  // namespace backtrail::tracee::cache
