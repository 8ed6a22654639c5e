// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/exit_profile.hpp"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {
namespace {

class ExitProfileTest : public testing::Test {
 protected:
  /// Returns how many samples were taken of a full log.
  std::size_t sample() {
    const std::size_t before = taken_;
    profile_.sample(log_, [this](std::uint32_t, std::uint32_t) {
      ++taken_;
      return std::optional<TraceeAddr>{};
    });
    return taken_ - before;
  }
  ExitProfile profile_;

 private:
  std::vector<std::uint32_t> log_ = std::vector<std::uint32_t>(100'000, 7);
  std::size_t taken_ = 0;
};

TEST_F(ExitProfileTest, SamplesFullLogsUntilItKnowsEnough) {
  EXPECT_GT(sample(), 0U);
  EXPECT_FALSE(profile_.due());
  while (!profile_.due()) (void)sample();
  EXPECT_EQ(profile_.counts().size(), 1U);
  profile_.begin_again(true);
  EXPECT_FALSE(profile_.due());
  EXPECT_TRUE(profile_.counts().empty());
}

TEST_F(ExitProfileTest, LogsAreSkippedWhereTheyTellNothingNew) {
  profile_.begin_again(false);
  EXPECT_EQ(sample(), 0U);
  EXPECT_GT(sample(), 0U);
}

TEST_F(ExitProfileTest, SamplesNoneOfTheFirstLogsOfKnownCode) {
  profile_.expect_known_code();
  std::size_t skipped = 0;
  while (sample() == 0) ++skipped;
  EXPECT_EQ(skipped, 6U);
  EXPECT_GT(sample(), 0U);
}

}  // namespace
}  // namespace backtrail::tracee::cache
