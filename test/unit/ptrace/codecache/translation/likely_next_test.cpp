// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/likely_next.hpp"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::translate::Exit;
using arch::cpu::translate::ExitKind;
using testing::ElementsAre;

constexpr TraceeAddr kHere{0x1000};

/// Takes everything that is worth translating.
std::vector<std::uint64_t> taken_from(LikelyNext& next) {
  std::vector<std::uint64_t> all;
  while (const auto code = next.take()) all.push_back(code->at.value());
  return all;
}

Chance chance_of(ExitKind kind, std::size_t index, std::uint64_t to) {
  const Exit exit{.kind = kind, .from = kHere, .to = TraceeAddr{to}};
  const LikelyCode code = likely_after(exit, index, kCertain);
  EXPECT_EQ(code.at, TraceeAddr{to});
  EXPECT_EQ(code.way, LikelyCode::Way::kDirect);
  return code.chance;
}

TEST(LikelyNextTest, TheLikeliestComesFirst) {
  LikelyNext next;
  const std::vector<LikelyCode> some{{.at = TraceeAddr{1}, .chance = 500},
                                     {.at = TraceeAddr{2}, .chance = 900}};
  const std::vector<LikelyCode> more{{.at = TraceeAddr{3}, .chance = 700}};
  next.add(some);
  next.add(more);
  EXPECT_THAT(taken_from(next), ElementsAre(2, 3, 1));
}

TEST(LikelyNextTest, OfEquallyLikelyOnesTheOldestComesFirst) {
  LikelyNext next;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    const LikelyCode code{.at = TraceeAddr{i}, .chance = 500};
    next.add({&code, 1});
  }
  EXPECT_THAT(taken_from(next), ElementsAre(1, 2, 3, 4, 5));
}

TEST(LikelyNextTest, WhatIsTakenKeepsItsWayAndItsChance) {
  LikelyNext next;
  const LikelyCode code{.at = kHere, .way = LikelyCode::Way::kPointer, .chance = 600};
  next.add({&code, 1});
  const auto taken = next.take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->way, LikelyCode::Way::kPointer);
  EXPECT_EQ(taken->chance, 600U);
  EXPECT_FALSE(next.take());
}

TEST(LikelyNextTest, NothingIsLeftAfterClear) {
  LikelyNext next;
  const LikelyCode code{.at = kHere};
  next.add({&code, 1});
  next.clear();
  EXPECT_FALSE(next.take());
}

/// However long the way, it ends.
TEST(LikelyNextTest, WhatFollowsUnlikelyCodeIsNotWorthIt) {
  LikelyNext next;
  LikelyCode code{.at = kHere};
  int steps = 0;
  for (; steps < 1000; ++steps) {
    next.add({&code, 1});
    const auto taken = next.take();
    if (!taken) break;
    code = likely_after({.from = kHere, .to = kHere + 0x100}, 1, taken->chance);
  }
  EXPECT_GT(steps, 1);
  EXPECT_LT(steps, 10);
}

TEST(LikelyAfter, JumpsAreLikelierTheNearerTheyLead) {
  const Chance call = chance_of(ExitKind::kDirect, 0, 0x9000);
  const Chance on = chance_of(ExitKind::kContinue, 0, 0x1004);
  const Chance back = chance_of(ExitKind::kDirect, 1, 0xf00);
  const Chance near = chance_of(ExitKind::kDirect, 1, 0x1010);
  const Chance forwards = chance_of(ExitKind::kDirect, 1, 0x1100);
  const Chance far = chance_of(ExitKind::kDirect, 1, 0x9000);
  const std::vector ascending{far, forwards, near, back, on, call};
  EXPECT_TRUE(std::ranges::is_sorted(ascending));
  EXPECT_LT(far, near);
  EXPECT_LT(near, call);
  EXPECT_LT(call, kCertain);
}

TEST(LikelyAfter, ChancesAreThoseOfBoth) {
  const Exit call{.kind = ExitKind::kDirect, .from = kHere, .to = TraceeAddr{0x9000}};
  EXPECT_EQ(likely_after(call, 0, kCertain / 2).chance, likely_after(call, 0, kCertain).chance / 2);
  EXPECT_EQ(after_return(500), after_return(kCertain) / 2);
  EXPECT_EQ(after_pointer(0), 0U);
}

}  // namespace
}  // namespace backtrail::tracee::cache
