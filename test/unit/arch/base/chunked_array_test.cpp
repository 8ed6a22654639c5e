// SPDX-License-Identifier: Apache-2.0
#include "arch/base/chunked_array.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace backtrail {
namespace {

using Numbers = ChunkedArray<std::uint32_t>;
constexpr std::size_t kChunk = Numbers::kChunk;

TEST(ChunkedArray, ElementsStayWhereTheyAre) {
  Numbers numbers;
  numbers.push_back(0);
  const std::uint32_t* first = &numbers[0];
  for (std::uint32_t i = 1; i < 3 * kChunk; ++i) numbers.push_back(i);
  EXPECT_EQ(numbers.size(), 3 * kChunk);
  EXPECT_EQ(first, &numbers[0]);
  for (std::uint32_t i = 0; i < 3 * kChunk; ++i) ASSERT_EQ(numbers[i], i);
}

TEST(ChunkedArray, WhatIsAppendedIsInOnePiece) {
  std::vector<std::uint32_t> values(kChunk / 2 + 1);
  std::iota(values.begin(), values.end(), 1);
  Numbers numbers;
  EXPECT_EQ(numbers.append(values), 0U);
  // The rest of the first chunk has no room for it.
  const std::size_t second = numbers.append(values);
  EXPECT_EQ(second, kChunk);
  const auto piece = numbers.piece(second, values.size());
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), values.begin(), values.end()));
  EXPECT_EQ(numbers[values.size()], 0U);
  EXPECT_EQ(numbers.append({}), numbers.size());
}

TEST(ChunkedArray, PiecesAreAllOfItInOrder) {
  Numbers numbers;
  for (std::uint32_t i = 0; i < kChunk + 5; ++i) numbers.push_back(i);
  std::vector<std::uint32_t> all;
  for (const auto piece : numbers.pieces()) all.insert(all.end(), piece.begin(), piece.end());
  ASSERT_EQ(all.size(), numbers.size());
  EXPECT_EQ(all.back(), kChunk + 4);
  numbers.clear();
  EXPECT_TRUE(numbers.empty());
  EXPECT_TRUE(numbers.pieces().empty());
}

TEST(ChunkedArray, FullChunksAreFollowedByNewOnes) {
  Numbers numbers;
  const std::vector<std::uint32_t> values(kChunk, 7);
  EXPECT_EQ(numbers.append(values), 0U);
  EXPECT_EQ(numbers.append(std::span{values}.first(1)), kChunk);
  numbers.push_back(8);
  EXPECT_EQ(numbers[kChunk + 1], 8U);
}

}  // namespace
}  // namespace backtrail
