// SPDX-License-Identifier: Apache-2.0
// Threads that switch too often are recorded only now and then.
#include "ptrace/trace/mark_pace.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kLook = 10'000'000;
/// The largest number of marks that is not too many.
constexpr std::size_t kMost = kLook / MarkPace::kShortestNs;

TEST(MarkPace, SomeMarksAreFine) {
  MarkPace pace{0};
  for (std::uint64_t i = 1; i < 100; ++i) EXPECT_FALSE(pace.too_many(kMost, i * kLook));
}

TEST(MarkPace, FewMarksAreFineHoweverSoonTheyCome) {
  MarkPace pace{0};
  EXPECT_FALSE(pace.too_many(MarkPace::kFewest, 1));
}

TEST(MarkPace, MarksOfALongTimeAreNotTooMany) {
  MarkPace pace{0};
  EXPECT_FALSE(pace.too_many(10 * kMost, 10 * kLook));
}

TEST(MarkPace, ManyMarksNeedARest) {
  MarkPace pace{0};
  EXPECT_TRUE(pace.too_many(kMost + 1, kLook));
  EXPECT_FALSE(pace.may_be_rested(2 * kLook));
  EXPECT_TRUE(pace.may_be_rested(kLook + MarkPace::kRestNs));
  EXPECT_TRUE(pace.rested(1, kLook + MarkPace::kRestNs));
}

TEST(MarkPace, ABurstAtTheBeginningNeedsNoRest) {
  MarkPace pace{0};
  EXPECT_TRUE(pace.busy_at_first(kMost + 1, kLook));
  EXPECT_TRUE(pace.may_be_rested(2 * kLook));
  EXPECT_FALSE(pace.rested(kMost + 1, 2 * kLook));
  EXPECT_TRUE(pace.rested(kMost, 3 * kLook));
}

TEST(MarkPace, WhoGoesOnSwitchingIsNotSeenAgain) {
  MarkPace pace{0};
  std::uint64_t now = kLook;
  EXPECT_TRUE(pace.too_many(kMost + 1, now));
  // Its switches during the pause, then its switches from look to look.
  now += MarkPace::kRestNs;
  EXPECT_FALSE(pace.rested(MarkPace::kRestNs / MarkPace::kShortestNs + 1, now));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(pace.rested(kMost + 1, now += kLook));
  EXPECT_TRUE(pace.rested(kMost, now += kLook));
}

TEST(MarkPace, RestsGetLongerUntilFewMarksCome) {
  MarkPace pace{0};
  std::uint64_t now = 0;
  const auto rest = [&] {
    now += kLook;
    EXPECT_TRUE(pace.too_many(kMost + 1, now));
    const std::uint64_t began = now;
    while (!pace.may_be_rested(now)) now += kLook;
    EXPECT_TRUE(pace.rested(0, now));
    return now - began;
  };
  EXPECT_EQ(rest(), MarkPace::kRestNs);
  EXPECT_EQ(rest(), 2 * MarkPace::kRestNs);
  for (int i = 0; i < 8; ++i) rest();
  EXPECT_EQ(rest(), MarkPace::kLongestRestNs);
  now += kLook;
  EXPECT_FALSE(pace.too_many(1, now));
  EXPECT_EQ(rest(), MarkPace::kRestNs);
}

}  // namespace
}  // namespace backtrail::tracee
