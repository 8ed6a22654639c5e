// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/likely_targets.hpp"

#include <array>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

constexpr TraceeAddr kStart{0x40'1000};
constexpr TraceeAddr kJump = kStart + 0x10;  ///< Taken inside the superblock.
constexpr TraceeAddr kOther = kStart + 0x20;
constexpr TraceeAddr kEnd = kStart + 0x30;
constexpr TraceeAddr kTarget{0x50'0000};

/// A superblock with a direct exit, an exit where its inner branch is not taken, and an indirect
/// exit at its end.
class LikelyTargetsTest : public testing::Test {
 protected:
  enum : std::uint32_t { kIndirect, kNotTaken, kDirect };

  LikelyTargetsTest() {
    const std::array branches{decoder::TakenBranch{kJump, kOther}};
    const std::uint32_t block = table_.add_block(kStart, branches);
    // The last exit of a superblock gets the lowest id.
    table_.add_exit({block, kEnd, {}, 1, decoder::LoggedExitKind::kIndirect, 9});
    table_.add_exit({block, kJump, kJump + 2, 0, decoder::LoggedExitKind::kContinue, 5});
    table_.add_exit({block, kStart, kTarget, 0, decoder::LoggedExitKind::kDirect, 1});
  }

  [[nodiscard]] SeenExit seen(std::uint32_t exit_id, std::uint32_t times) const {
    return {exit_id, *table_.find(exit_id), {.seen = times, .target = {}}};
  }
  [[nodiscard]] SeenExit indirect(TraceeAddr target, std::uint32_t times,
                                  std::uint32_t majority) const {
    return {kIndirect,
            *table_.find(kIndirect),
            {.seen = times, .target = target, .majority = majority}};
  }
  bool learn(const std::vector<SeenExit>& exits) {
    return likely_.learn(exits, table_, [this](TraceeAddr) { return conditional_; });
  }

  decoder::ExitTable table_;
  LikelyTargets likely_;
  bool conditional_ = true;
};

TEST_F(LikelyTargetsTest, AFewSamplesTellNothing) {
  EXPECT_FALSE(learn({seen(kDirect, 11)}));
  EXPECT_EQ(likely_.find(kStart), std::nullopt);
}

TEST_F(LikelyTargetsTest, AConditionalJumpIsFollowedWhenItIsMostlyTaken) {
  EXPECT_FALSE(learn({seen(kDirect, 10), indirect(kTarget, 20, 0)}));
  EXPECT_TRUE(learn({indirect(kTarget, 10, 0), seen(kDirect, 20)}));
  EXPECT_EQ(likely_.find(kStart), kTarget);
  // No news.
  EXPECT_FALSE(learn({seen(kDirect, 20)}));
}

TEST_F(LikelyTargetsTest, OtherDirectBranchesAreNot) {
  conditional_ = false;
  EXPECT_FALSE(learn({seen(kDirect, 20)}));
  EXPECT_EQ(likely_.find(kStart), std::nullopt);
}

TEST_F(LikelyTargetsTest, AnIndirectBranchIsFollowedToItsMostFrequentTarget) {
  EXPECT_FALSE(learn({indirect(kTarget, 100, 39)}));
  EXPECT_TRUE(learn({indirect(kTarget, 100, 40)}));
  EXPECT_EQ(likely_.find(kEnd), kTarget);
  // The branch goes anywhere now.
  EXPECT_TRUE(learn({indirect(kTarget, 100, 10)}));
  EXPECT_EQ(likely_.find(kEnd), std::nullopt);
}

TEST_F(LikelyTargetsTest, ABranchThatIsFollowedInVainIsNotAnyMore) {
  // The branch is not known yet.
  EXPECT_FALSE(learn({seen(kNotTaken, 20)}));
  decoder::ExitTable other;
  const std::uint32_t block = other.add_block(kStart, {});
  other.add_exit({block, kJump, kOther, 0, decoder::LoggedExitKind::kDirect, 5});
  EXPECT_TRUE(likely_.learn({{0, *other.find(0), {.seen = 20, .target = {}}}}, other,
                            [](TraceeAddr) { return true; }));
  EXPECT_EQ(likely_.find(kJump), kOther);
  EXPECT_TRUE(learn({seen(kNotTaken, 20)}));
  EXPECT_EQ(likely_.find(kJump), std::nullopt);
}

TEST_F(LikelyTargetsTest, ABranchMayChangeAFewTimesOnly) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(learn({indirect(kTarget, 100, 100)}));
    EXPECT_TRUE(learn({indirect(kTarget, 100, 0)}));
  }
  EXPECT_FALSE(learn({indirect(kTarget, 100, 100)}));
  EXPECT_EQ(likely_.find(kEnd), std::nullopt);
}

}  // namespace
}  // namespace backtrail::tracee::cache
