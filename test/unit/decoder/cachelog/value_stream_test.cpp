// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/value_stream.hpp"

#include <array>

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

/// A thread that writes the numbers 0, 1, 2... into its ring.
struct Recorder {
  /// Writes that many values. Returns the index of the next.
  std::uint64_t write(std::size_t count) {
    for (; count != 0; --count, ++written) ring.at(written % ring.size()) = written;
    return written % ring.size();
  }
  /// The thread runs, and leaves translated code at an anchor.
  void run(std::size_t count, std::uint64_t entries, std::uint64_t left = 0,
           std::uint64_t oldest = 0) {
    values.begin_writing();
    values.end_writing(write(count));
    values.add_anchor(entries, left, oldest);
  }
  /// Returns the value where a stretch begins.
  [[nodiscard]] std::optional<std::uint64_t> first_of(const ValueStream::Stretch& stretch) const {
    return stretch.value ? values.at(*stretch.value) : std::nullopt;
  }
  std::array<std::uint64_t, 16> ring{};
  std::uint64_t written = 0;
  ValueStream values{ring};
};

/// Each log entry stands for one value.
std::uint64_t one_each(std::uint64_t from, std::uint64_t to) {
  return to - from;
}

TEST(ValueStreamTest, ValuesAreNumberedBackwardsFromTheNewestOne) {
  Recorder thread;
  thread.values.end_writing(thread.write(20));
  EXPECT_EQ(thread.values.at(thread.values.end() - 1), 19U);
  EXPECT_EQ(thread.values.at(thread.values.end() - 16), 4U);
  EXPECT_EQ(thread.values.at(thread.values.end() - 17), std::nullopt);
  EXPECT_EQ(thread.values.at(thread.values.end()), std::nullopt);
}

TEST(ValueStreamTest, ARingThatIsBeingWrittenTellsNothing) {
  Recorder thread;
  thread.run(5, 5);
  thread.values.begin_writing();
  EXPECT_EQ(thread.values.at(thread.values.end() - 1), std::nullopt);
  for (const auto& stretch : thread.values.align(0, one_each))
    EXPECT_EQ(stretch.value, std::nullopt);
}

TEST(ValueStreamTest, OwnedValuesNeedNoRing) {
  Recorder thread;
  thread.values.end_writing(thread.write(20));
  thread.values.own(5);
  thread.ring.fill(0);
  EXPECT_EQ(thread.values.at(thread.values.end() - 6), std::nullopt);
  EXPECT_EQ(thread.values.at(thread.values.end() - 5), 15U);
  EXPECT_EQ(thread.values.at(thread.values.end() - 1), 19U);
  thread.values.own(2);
  EXPECT_EQ(thread.values.at(thread.values.end() - 3), std::nullopt);
  EXPECT_EQ(thread.values.at(thread.values.end() - 2), 18U);
}

TEST(ValueStreamTest, NothingIsOwnedOfARingThatIsBeingWritten) {
  Recorder thread;
  thread.values.end_writing(thread.write(5));
  thread.values.begin_writing();
  thread.values.own(5);
  EXPECT_EQ(thread.values.at(thread.values.end() - 1), std::nullopt);
}

TEST(ValueStreamTest, AnAnchorTellsWhereTheValuesBeforeItBegin) {
  Recorder thread;
  thread.run(7, 5, 2);
  const auto all = thread.values.align(2, one_each);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].entry, 2U);
  EXPECT_EQ(thread.first_of(all[0]), 2U);
  EXPECT_EQ(all[1].entry, 5U);
  EXPECT_EQ(all[1].value, std::nullopt);
}

TEST(ValueStreamTest, ValuesThatBelongToNoEntryAreSkipped) {
  Recorder thread;
  thread.run(7, 5, 2);
  thread.run(3, 8);
  const auto all = thread.values.align(0, one_each);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(thread.first_of(all[0]), 0U);
  EXPECT_EQ(all[1].entry, 5U);
  EXPECT_EQ(thread.first_of(all[1]), 7U);
}

/// The indices at the anchors are those of a thread that has gone round never, once or three times.
TEST(ValueStreamTest, AThreadGoesRoundWithoutAWord) {
  for (const std::uint64_t many : {12U, 28U, 60U}) {
    SCOPED_TRACE(many);
    Recorder thread;
    thread.run(5, 5);
    thread.run(many, 5 + many);
    const auto all = thread.values.align(0, one_each);
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(thread.first_of(all[0]), std::nullopt);
    EXPECT_EQ(all[1].entry, 5U);
    // The first values of the stretch may be overwritten, later ones are found.
    const std::uint64_t kept = std::min<std::uint64_t>(many, thread.ring.size());
    EXPECT_EQ(thread.values.at(*all[1].value + many - kept), 5 + many - kept);
    EXPECT_EQ(thread.values.at(*all[1].value + many - 1), 4 + many);
    const auto older = thread.values.at(*all[1].value + many - kept - 1);
    EXPECT_EQ(older, kept == many ? std::optional<std::uint64_t>{4} : std::nullopt);
  }
}

TEST(ValueStreamTest, CountsThatDoNotAgreeMakeOlderValuesUnknown) {
  Recorder thread;
  thread.run(5, 5);
  thread.run(4, 8);  // Three entries, but four values.
  thread.run(2, 10);
  const auto all = thread.values.align(0, one_each);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].value, std::nullopt);
  EXPECT_EQ(all[1].value, std::nullopt);
  EXPECT_EQ(thread.first_of(all[2]), 9U);
}

TEST(ValueStreamTest, CountsMustAgreeFromTheBeginningOn) {
  Recorder thread;
  thread.run(5, 6);
  EXPECT_EQ(thread.values.align(0, one_each).front().value, std::nullopt);
}

TEST(ValueStreamTest, WhatWasDecodedBeforeAnAnchorIsNotCounted) {
  Recorder thread;
  thread.run(5, 5);
  EXPECT_EQ(thread.values.align(0, one_each).size(), 2U);
  thread.run(6, 11, 0, 7);
  const auto all = thread.values.align(8, one_each);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].entry, 8U);
  EXPECT_EQ(thread.first_of(all[0]), 8U);
}

}  // namespace
}  // namespace backtrail::decoder
