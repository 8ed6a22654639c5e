// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/aux_area.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace backtrail::decoder::perf {
namespace {

constexpr std::uint64_t kArea = 4096;

TEST(AuxCursor, TakesEachByteOnceAndOnlyBelowTheHead) {
  AuxCursor cursor{kArea};
  cursor.add({0, 100, 0});
  cursor.add({100, 50, 0});
  EXPECT_EQ(cursor.take(120), (std::vector<AuxPiece>{{0, 100, 0, true}}));
  EXPECT_EQ(cursor.tail(), 100U);
  EXPECT_EQ(cursor.take(150), (std::vector<AuxPiece>{{100, 50, 0, true}}));
  cursor.add({100, 50, 0});  // Reported twice.
  EXPECT_TRUE(cursor.take(150).empty());
}

TEST(AuxCursor, PaddingThatNoRecordVouchesForIsNoData) {
  AuxCursor cursor{kArea};
  cursor.add({0, 96, 0});
  cursor.add({120, 24, 0});
  EXPECT_EQ(cursor.take(160), (std::vector<AuxPiece>{{0, 96, 0, true}, {120, 24, 0, true}}));
  EXPECT_EQ(cursor.tail(), 160U);
}

TEST(AuxCursor, BytesWhoseRecordWasLostAreTakenUndescribed) {
  AuxCursor cursor{kArea};
  cursor.add({0, 96, 0});
  cursor.ring_lost();
  cursor.add({120, 24, 0});
  EXPECT_EQ(cursor.take(160),
            (std::vector<AuxPiece>{
                {0, 96, 0, true}, {96, 24, 0, false}, {120, 24, 0, true}, {144, 16, 0, false}}));
  cursor.add({160, 8, 0});
  EXPECT_EQ(cursor.take(200), (std::vector<AuxPiece>{{160, 8, 0, true}}));
}

TEST(AuxCursor, FlagsWithoutBytesAreTold) {
  AuxCursor cursor{kArea};
  cursor.add({0, 0, kAuxTruncated});
  const auto pieces = cursor.take(0);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_TRUE(pieces[0].truncated());
  EXPECT_EQ(pieces[0].size, 0U);
  EXPECT_FALSE(pieces[0].has_holes());
}

TEST(AuxCursor, ImpossibleRecordsAreIgnored) {
  AuxCursor cursor{kArea};
  cursor.add({10, kArea + 1, 0});
  cursor.add({~0ULL, 5, 0});
  EXPECT_TRUE(cursor.take(~0ULL).empty());
}

TEST(AuxArea, PiecesWrapAtEveryOffset) {
  std::vector<std::uint8_t> area(64);
  std::iota(area.begin(), area.end(), std::uint8_t{0});
  for (std::uint64_t offset = 0; offset < 200; ++offset) {
    for (std::uint64_t size = 0; size <= 64; ++size) {
      const auto bytes = copy_piece(area, offset, size);
      ASSERT_EQ(bytes.size(), size);
      for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(bytes[i], (offset + i) % 64);
    }
  }
}

TEST(AuxArea, SnapshotKeepsTheGridAndTheOrder) {
  constexpr std::uint64_t kUnit = 24;
  std::vector<std::uint8_t> area(100, 0);  // Four records, and four bytes that hold none.
  std::fill_n(area.begin(), 48, std::uint8_t{1});
  EXPECT_FALSE(snapshot_wrapped(area, 48));
  EXPECT_EQ(copy_snapshot(area, 48, kUnit, false), std::vector<std::uint8_t>(48, 1));
  std::fill_n(area.begin() + 48, 48, std::uint8_t{2});
  EXPECT_TRUE(snapshot_wrapped(area, 48));
  std::vector<std::uint8_t> expected(48, 2);
  expected.insert(expected.end(), 48, 1);
  EXPECT_EQ(copy_snapshot(area, 48, kUnit, true), expected);
  // A head within a record: that record is torn, and is left out.
  EXPECT_EQ(copy_snapshot(area, 60, kUnit, false).size(), 48U);
  EXPECT_EQ(copy_snapshot(area, 1000, 1, true).size(), 100U);
}

}  // namespace
}  // namespace backtrail::decoder::perf
