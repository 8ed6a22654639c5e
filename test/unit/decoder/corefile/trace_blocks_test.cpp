// SPDX-License-Identifier: Apache-2.0
// Tests records in compressed blocks, intact and damaged.
#include "decoder/corefile/trace_blocks.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using ::testing::ElementsAreArray;
using ::testing::SizeIs;

std::vector<Record> some_records(std::size_t count) {
  std::mt19937_64 random{7};
  std::vector<Record> records{gap(GapReason::kStart, TraceeAddr{}, TraceeAddr{0x401000})};
  while (records.size() < count) {
    const TraceeAddr at = records.back().to;
    const TraceeAddr to{random() % 16 == 0 ? random() : at.value() - random() % 64};
    if (random() % 100 == 0) {
      records.push_back(gap(GapReason::kOverflow, at, to, static_cast<std::uint32_t>(random())));
    } else if (random() % 50 == 0) {
      records.push_back(async_transfer(at, to));
    } else {
      records.push_back(branch(at + random() % 40, to));
    }
  }
  return records;
}

TEST(TraceBlocks, GiveBackWhatWentIn) {
  const std::vector<Record> records = some_records(1000);
  std::vector<std::uint8_t> bytes;
  append_block(77, 12345, records, bytes);
  const BlockScan scan = scan_blocks(bytes);
  ASSERT_THAT(scan.blocks, SizeIs(1));
  EXPECT_EQ(scan.unreadable_bytes, 0U);
  EXPECT_EQ(scan.blocks[0].tid, 77U);
  EXPECT_EQ(scan.blocks[0].first, 12345U);
  std::vector<Record> out;
  ASSERT_TRUE(decode_block(scan.blocks[0], out));
  EXPECT_THAT(out, ElementsAreArray(records));
}

TEST(TraceBlocks, AreCountedWithoutTheirBranches) {
  std::vector<Record> records = some_records(5000);
  std::uint64_t others = 0;
  std::uint64_t lost = 0;
  for (const Record& record : records) {
    others += record.kind != RecordKind::kBranch ? 1U : 0U;
    if (record.reason == GapReason::kOverflow) lost += record.payload;
  }
  std::vector<std::uint8_t> bytes;
  append_block(77, 0, records, bytes);
  const auto counts = count_block(scan_blocks(bytes).blocks.at(0));
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->others, others);
  EXPECT_EQ(counts->lost, lost);
  EXPECT_TRUE(counts->lost_is_exact);
  records[1] = gap(GapReason::kOverflow, records[0].to, records[2].from);
  bytes.clear();
  append_block(77, 0, records, bytes);
  EXPECT_FALSE(count_block(scan_blocks(bytes).blocks.at(0))->lost_is_exact);
  bytes[kBlockHeaderBytes + 40] ^= 1U;
  EXPECT_FALSE(count_block(scan_blocks(bytes).blocks.at(0)));
}

TEST(TraceBlocks, TheWorstRecordsFitIntoABlock) {
  std::vector<Record> records;
  for (std::uint32_t i = 0; i < kBlockRecords; ++i) {
    const std::uint64_t high = 0x8000000000000000ULL;
    records.push_back({TraceeAddr{i % 2 == 0 ? high : 0}, TraceeAddr{i % 2 == 0 ? 0 : high},
                       RecordKind::kGap, GapReason::kUndecodable, LossBound::kBatches, ~0U});
  }
  std::vector<std::uint8_t> bytes;
  append_block(1, 0, records, bytes);
  std::vector<Record> out;
  const BlockScan scan = scan_blocks(bytes);
  ASSERT_THAT(scan.blocks, SizeIs(1));
  ASSERT_TRUE(decode_block(scan.blocks[0], out));
  EXPECT_EQ(out, records);
}

TEST(TraceBlocks, DamageCostsOneBlock) {
  const std::vector<Record> records = some_records(200);
  std::vector<std::uint8_t> bytes;
  for (std::uint64_t i = 0; i < 3; ++i) append_block(5, i * 200, records, bytes);
  const std::size_t one = bytes.size() / 3;
  for (std::size_t at = one; at < 2 * one; ++at) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[at] ^= 0x10U;
    std::size_t good = 0;
    for (const TraceBlock& block : scan_blocks(damaged).blocks) {
      std::vector<Record> out;
      if (!decode_block(block, out)) {
        EXPECT_TRUE(out.empty());
        continue;
      }
      EXPECT_EQ(out, records);
      ++good;
    }
    // A few bits of a frame have no meaning.
    EXPECT_GE(good, 2U) << at;
  }
}

TEST(TraceBlocks, ACutBlockIsNotThere) {
  std::vector<std::uint8_t> bytes;
  append_block(5, 0, some_records(100), bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const BlockScan scan = scan_blocks(std::span{bytes}.first(size));
    EXPECT_TRUE(scan.blocks.empty());
    EXPECT_EQ(scan.unreadable_bytes, size);
  }
}

TEST(TraceBlocks, CrcIsTheUsualOne) {
  constexpr std::array<std::uint8_t, 9> kDigits{'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  EXPECT_EQ(crc32(kDigits), 0xcbf43926U);
}

}  // namespace
}  // namespace backtrail::decoder
