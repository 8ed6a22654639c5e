// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/value_log.hpp"

#include <array>
#include <span>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::translate::Slot;

constexpr std::size_t kValues = 32;
constexpr TraceeAddr kFirst{0x10000};
constexpr TraceeAddr kSecond{0x20000};

/// Two ranges of kValues values, and a thread that fills them.
class ValueLogTest : public testing::Test {
 protected:
  /// The thread stores a value; it counts if `finished`.
  void store(std::uint64_t value, bool finished = true) {
    std::uint64_t* const host = at_ < kSecond ? first_.data() : second_.data();
    const TraceeAddr begin = at_ < kSecond ? kFirst : kSecond;
    host[(at_ - begin) / sizeof value] = value;
    at_ = at_ + sizeof value;
    if (finished) memory_.write(Slot::kValues, at_.value());
  }

  std::array<std::uint8_t, 4096> page_{};
  ThreadMemory memory_{page_.data(), TraceeAddr{0x1000}};
  /// Both ranges, with room in between, as for the guard page.
  std::array<std::uint64_t, 3 * kValues> both_{};
  std::span<std::uint64_t> first_ = std::span{both_}.first(kValues);
  std::span<std::uint64_t> second_ = std::span{both_}.last(kValues);
  ValueLog log_{memory_,
                {ValueRange{first_.data(), kFirst, kFirst + first_.size_bytes()},
                 ValueRange{second_.data(), kSecond, kSecond + second_.size_bytes()}}};
  decoder::ValueStream values_;
  TraceeAddr at_ = kFirst;
};

TEST_F(ValueLogTest, TakesWhatIsNew) {
  store(1);
  log_.take(values_);
  log_.take(values_);
  store(2);
  store(3);
  log_.take(values_);
  ASSERT_EQ(values_.end(), 3U);
  EXPECT_EQ(values_.at(2), 3U);
}

/// The guard page may come at any of the values that are stored at once.
TEST_F(ValueLogTest, GoesOnWithUnfinishedValuesInTheOtherRange) {
  constexpr std::size_t kAtOnce = 7;
  for (std::size_t unfinished = 0; unfinished < kAtOnce; ++unfinished) {
    SCOPED_TRACE(unfinished);
    const std::uint64_t before = values_.end();
    const TraceeAddr end = log_.end();
    const std::uint64_t room = (end - at_) / sizeof(std::uint64_t);
    while (at_ + unfinished * sizeof(std::uint64_t) < end) store(values_.end() + at_.value());
    for (std::size_t i = 0; i < unfinished; ++i) store(77 + i, false);
    ASSERT_EQ(at_, end);
    const TraceeAddr next = log_.go_on(values_);
    EXPECT_NE(next, end);
    EXPECT_EQ(log_.next(), next);
    EXPECT_EQ(values_.end(), before + room - unfinished);
    const std::uint64_t* host = next == kFirst ? first_.data() : second_.data();
    for (std::size_t i = 0; i < unfinished; ++i) EXPECT_EQ(host[i], 77 + i);
    // The thread stores the rest, and the values count.
    at_ = next + unfinished * sizeof(std::uint64_t);
    for (std::size_t i = unfinished; i < kAtOnce; ++i) store(77 + i, i + 1 == kAtOnce);
    log_.take(values_);
    EXPECT_EQ(values_.end(), before + room - unfinished + kAtOnce);
    EXPECT_EQ(values_.at(values_.end() - kAtOnce), 77U);
    at_ = log_.next();
  }
}

/// A thread leaves a superblock that has stored values and not counted them.
TEST_F(ValueLogTest, CountsWhatWasStored) {
  store(1);
  store(2, false);
  store(3, false);
  log_.count(2);
  log_.take(values_);
  ASSERT_EQ(values_.end(), 3U);
  EXPECT_EQ(values_.at(1), 2U);
  EXPECT_EQ(values_.at(2), 3U);
}

TEST_F(ValueLogTest, KeepsTheOtherRangeUntilItIsFilledAgain) {
  for (std::uint64_t i = 0; i < 2 * kValues; ++i) {
    store(i);
    if (at_ == log_.end()) at_ = log_.go_on(values_);
  }
  EXPECT_EQ(values_.at(kValues - 1), std::nullopt);
  EXPECT_EQ(values_.at(kValues), kValues);
}

}  // namespace
}  // namespace backtrail::tracee::cache
