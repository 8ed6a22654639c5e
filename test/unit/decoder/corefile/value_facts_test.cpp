// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/value_facts.hpp"

#include <gtest/gtest.h>

#include "decoder/corefile/trace_blocks.hpp"

namespace backtrail::decoder {
namespace {

std::deque<ValueFact> some_facts(std::size_t count, unsigned kinds = 16) {
  std::deque<ValueFact> out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = i % 3 == 0 ? ~i : 0x7fff'0000'0000 + 8 * i;
    out.push_back({100 + i / 4, TraceeAddr{0x40'1000 + i % 100}, value,
                   static_cast<std::uint8_t>(i % kinds)});
  }
  return out;
}

std::vector<ValueFact> read(const std::vector<std::uint8_t>& bytes) {
  std::vector<ValueFact> out;
  const BlockScan scan = scan_blocks(bytes);
  EXPECT_EQ(scan.unreadable_bytes, 0U);
  for (const TraceBlock& block : scan.facts) {
    EXPECT_EQ(block.tid, 7U);
    EXPECT_TRUE(decode_facts(block, out));
  }
  return out;
}

TEST(ValueFactsTest, WhatIsReadIsWhatWasWritten) {
  for (const std::size_t count : {std::size_t{1}, kBlockFacts, 2 * kBlockFacts + 5}) {
    const auto facts = some_facts(count);
    std::vector<std::uint8_t> bytes;
    append_facts(7, facts, 0, bytes);
    EXPECT_EQ(read(bytes), std::vector<ValueFact>(facts.begin(), facts.end()));
  }
}

TEST(ValueFactsTest, OverwrittenBytesAreReadAsTheyWereWritten) {
  const auto facts = some_facts(kBlockFacts + 5, arch::kFactKinds);
  std::vector<std::uint8_t> bytes;
  append_facts(7, facts, 0, bytes);
  EXPECT_EQ(read(bytes), std::vector<ValueFact>(facts.begin(), facts.end()));
}

/// Earlier versions can read files without such values.
TEST(ValueFactsTest, OnlyBlocksWithOverwrittenBytesHaveTheNewVersion) {
  std::deque<ValueFact> facts = some_facts(kBlockFacts);
  facts.push_back(
      {.record = facts.back().record, .pc = {}, .value = 0, .kind = arch::kind_of({1, 4})});
  std::vector<std::uint8_t> bytes;
  append_facts(7, facts, 0, bytes);
  const BlockScan scan = scan_blocks(bytes);
  ASSERT_EQ(scan.facts.size(), 2U);
  EXPECT_EQ(scan.facts[0].records, kFactsVersion);
  EXPECT_EQ(scan.facts[1].records, kOldBytesVersion);
}

TEST(ValueFactsTest, NumbersAreShiftedAndEarlierRecordsLeftOut) {
  const auto facts = some_facts(40);
  std::vector<std::uint8_t> bytes;
  append_facts(7, facts, 103, bytes);
  const auto found = read(bytes);
  ASSERT_EQ(found.size(), 40U - 12U);
  EXPECT_EQ(found.front().record, 0U);
  EXPECT_EQ(found.back().record, 6U);
  EXPECT_EQ(found.back().value, facts.back().value);
}

TEST(ValueFactsTest, NothingIsWrittenForNothing) {
  std::vector<std::uint8_t> bytes;
  append_facts(7, {}, 0, bytes);
  EXPECT_TRUE(bytes.empty());
}

TEST(ValueFactsTest, DamagedBlocksAddNothing) {
  const auto facts = some_facts(100);
  std::vector<std::uint8_t> bytes;
  append_facts(7, facts, 0, bytes);
  const std::vector<std::uint8_t> whole = bytes;
  std::size_t refused = 0;
  for (std::size_t i = kBlockHeaderBytes; i < bytes.size(); ++i) {
    bytes = whole;
    bytes[i] ^= 0x10U;
    std::vector<ValueFact> out;
    for (const TraceBlock& block : scan_blocks(bytes).facts) {
      // A few bits of a zstd frame have no meaning.
      if (decode_facts(block, out)) {
        EXPECT_EQ(out, std::vector<ValueFact>(facts.begin(), facts.end()));
        continue;
      }
      EXPECT_TRUE(out.empty());
      ++refused;
    }
  }
  EXPECT_GT(refused * 10, 9 * (bytes.size() - kBlockHeaderBytes));
}

TEST(ValueFactsTest, AnUnknownVersionIsRefused) {
  std::vector<std::uint8_t> bytes;
  append_packed({.magic = kFactsMagic, .tid = 7, .records = kMemoryVersion + 1},
                std::vector<std::uint8_t>{0}, bytes);
  const BlockScan scan = scan_blocks(bytes);
  ASSERT_EQ(scan.facts.size(), 1U);
  std::vector<ValueFact> out;
  EXPECT_FALSE(decode_facts(scan.facts.front(), out));
}

}  // namespace
}  // namespace backtrail::decoder
