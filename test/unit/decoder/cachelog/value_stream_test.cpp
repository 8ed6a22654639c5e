// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/value_stream.hpp"

#include <array>

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

class ValueStreamTest : public testing::Test {
 protected:
  ValueStreamTest() {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_.at(i) = 100 + i;
  }
  [[nodiscard]] std::span<const std::uint64_t> memory(std::size_t begin, std::size_t count) const {
    return std::span{memory_}.subspan(begin, count);
  }
  std::array<std::uint64_t, 16> memory_{};
  ValueStream values_;
};

/// Each log entry stands for one value.
std::uint64_t one_each(std::uint64_t from, std::uint64_t to) {
  return to - from;
}

TEST_F(ValueStreamTest, ValuesAreNumberedFromTheFirstOneOn) {
  values_.hold(memory(0, 4));
  values_.hold(memory(4, 2));
  values_.hold(memory(10, 3));
  EXPECT_EQ(values_.end(), 9U);
  EXPECT_EQ(values_.at(5), 105U);
  EXPECT_EQ(values_.at(6), 110U);
  EXPECT_EQ(values_.at(9), std::nullopt);
}

TEST_F(ValueStreamTest, WhatIsOverwrittenAndAllBeforeItIsForgotten) {
  values_.hold(memory(8, 2));
  values_.hold(memory(0, 4));
  values_.hold(memory(12, 2));
  values_.forget(memory(3, 1));
  EXPECT_EQ(values_.at(0), std::nullopt);
  EXPECT_EQ(values_.at(5), std::nullopt);
  EXPECT_EQ(values_.at(6), 112U);
}

TEST_F(ValueStreamTest, OwnedValuesNeedNoMemoryButTheirs) {
  values_.hold(memory(0, 4));
  values_.hold(memory(8, 4));
  values_.own(5);
  memory_.fill(0);
  values_.forget(memory(0, 16));
  EXPECT_EQ(values_.at(2), std::nullopt);
  EXPECT_EQ(values_.at(3), 103U);
  EXPECT_EQ(values_.at(7), 111U);
}

TEST_F(ValueStreamTest, AnAnchorTellsWhereTheValuesBeforeItBegin) {
  values_.hold(memory(0, 7));
  values_.add_anchor(5, 2, 0);
  const auto all = values_.align(2, one_each);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].entry, 2U);
  EXPECT_EQ(all[0].value, 2U);
  EXPECT_EQ(all[1].entry, 5U);
  EXPECT_EQ(all[1].value, std::nullopt);
}

TEST_F(ValueStreamTest, ValuesThatBelongToNoEntryAreSkipped) {
  values_.hold(memory(0, 7));
  values_.add_anchor(5, 2, 0);
  values_.hold(memory(7, 3));
  values_.add_anchor(8, 0, 0);
  const auto all = values_.align(0, one_each);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].value, 0U);
  EXPECT_EQ(all[1].entry, 5U);
  EXPECT_EQ(all[1].value, 7U);
}

TEST_F(ValueStreamTest, CountsThatDoNotAgreeMakeValuesUnknownUpToTheNextAnchor) {
  values_.hold(memory(0, 5));
  values_.add_anchor(5, 0, 0);
  values_.hold(memory(5, 4));
  values_.add_anchor(8, 0, 0);  // Three entries, but four values.
  values_.hold(memory(9, 2));
  values_.add_anchor(10, 0, 0);
  const auto all = values_.align(0, one_each);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].value, 0U);
  EXPECT_EQ(all[1].value, std::nullopt);
  EXPECT_EQ(all[2].value, 9U);
}

TEST_F(ValueStreamTest, WhatWasDecodedBeforeAnAnchorIsNotCounted) {
  values_.hold(memory(0, 5));
  values_.add_anchor(5, 0, 0);
  EXPECT_EQ(values_.align(0, one_each).size(), 2U);
  values_.hold(memory(5, 6));
  values_.add_anchor(11, 0, 7);
  const auto all = values_.align(8, one_each);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].entry, 8U);
  EXPECT_EQ(all[0].value, 8U);
}

}  // namespace
}  // namespace backtrail::decoder
