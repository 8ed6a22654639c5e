// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/head_table.hpp"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

TEST(HeadTable, HoldsWhatAMapHolds) {
  std::mt19937_64 random{3};
  std::map<TraceeAddr, std::uint32_t> expected;
  HeadTable table;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    // Dense code, other modules, and addresses that no program has.
    const std::uint64_t base = (random() & 3U) * 0x7f00'0000'0000U;
    const TraceeAddr head{base + (random() & 0x1'ffffU)};
    expected[head] = i;
    table.at(head).block = i;
  }
  table.at(TraceeAddr{0}).first_exit = 5;
  table.at(TraceeAddr{~std::uint64_t{0}}).first_exit = 6;
  for (const auto& [head, block] : expected) {
    ASSERT_NE(table.find(head), nullptr);
    ASSERT_EQ(table.find(head)->block, block);
  }
  EXPECT_EQ(table.find(TraceeAddr{0})->first_exit, 5U);
  EXPECT_EQ(table.find(TraceeAddr{~std::uint64_t{0}})->first_exit, 6U);
  for (std::uint64_t at = 0x20'0000; at < 0x20'1000; ++at) {
    ASSERT_EQ(table.find(TraceeAddr{at}), nullptr);
  }
  EXPECT_EQ(table.find(HeadTable::kNowhere), nullptr);
}

TEST(HeadTable, IsEmptyAtFirstAndWhenCleared) {
  HeadTable table;
  EXPECT_EQ(table.find(TraceeAddr{1}), nullptr);
  EXPECT_EQ(table.at(TraceeAddr{1}).block, HeadTable::kNone);
  table.clear();
  EXPECT_EQ(table.find(TraceeAddr{1}), nullptr);
  EXPECT_TRUE(table.slots().empty());
}

}  // namespace
}  // namespace backtrail::tracee::cache
