// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/block_code.hpp"

#include <array>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

constexpr std::uint32_t kBlock = 7;
constexpr auto kBytes = [] {
  std::array<std::uint8_t, 16> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(i);
  return out;
}();

/// Expects `count` bytes from the index `first` on.
void expect_segment(const BlockCode& code, std::size_t passed, TraceeAddr begin, std::size_t first,
                    std::size_t count) {
  SCOPED_TRACE(passed);
  const auto segment = code.segment(kBlock, passed);
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->begin, begin);
  ASSERT_EQ(segment->bytes.size(), count);
  EXPECT_EQ(segment->bytes[0], first);
}

TEST(BlockCodeTest, ASegmentBeginsAfterEachBranch) {
  BlockCode code;
  EXPECT_TRUE(code.empty());
  const std::vector<TakenBranch> branches{{0x103_ta, 0x200_ta}, {0x206_ta, 0x300_ta}};
  const std::vector<TakenBranch> ranges{
      {0x100_ta, 0x105_ta}, {0x200_ta, 0x208_ta}, {0x300_ta, 0x303_ta}};
  code.add(kBlock, branches, ranges, kBytes);
  EXPECT_FALSE(code.empty());
  expect_segment(code, 0, 0x100_ta, 0, 5);
  expect_segment(code, 1, 0x200_ta, 5, 8);
  expect_segment(code, 2, 0x300_ta, 13, 3);
  EXPECT_FALSE(code.segment(kBlock, 3));
  EXPECT_FALSE(code.segment(kBlock + 1, 0));
}

TEST(BlockCodeTest, ABranchToTheNextInstructionGoesOnInItsRange) {
  BlockCode code;
  const std::vector<TakenBranch> branches{{0x103_ta, 0x105_ta}, {0x108_ta, 0x100_ta}};
  const std::vector<TakenBranch> ranges{{0x100_ta, 0x10a_ta}, {0x100_ta, 0x106_ta}};
  code.add(kBlock, branches, ranges, kBytes);
  expect_segment(code, 0, 0x100_ta, 0, 10);
  expect_segment(code, 1, 0x105_ta, 5, 5);
  expect_segment(code, 2, 0x100_ta, 10, 6);
}

/// The branch of a loop leads back into the range that it ends.
TEST(BlockCodeTest, ALoopHasARangeForEachTurn) {
  BlockCode code;
  const std::vector<TakenBranch> branches{{0x10a_ta, 0x104_ta}};
  const std::vector<TakenBranch> ranges{{0x100_ta, 0x10c_ta}, {0x104_ta, 0x108_ta}};
  code.add(kBlock, branches, ranges, kBytes);
  expect_segment(code, 0, 0x100_ta, 0, 12);
  expect_segment(code, 1, 0x104_ta, 12, 4);
}

TEST(BlockCodeTest, WhereThePathIsLostTheSegmentsEnd) {
  BlockCode code;
  const std::vector<TakenBranch> branches{{0x103_ta, 0x200_ta}};
  const std::vector<TakenBranch> ranges{{0x100_ta, 0x105_ta}, {0x300_ta, 0x303_ta}};
  code.add(kBlock, branches, ranges, std::span{kBytes}.first(8));
  expect_segment(code, 0, 0x100_ta, 0, 5);
  EXPECT_FALSE(code.segment(kBlock, 1));
}

}  // namespace
}  // namespace backtrail::decoder
