// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/filter_calls.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

TEST(FilterCalls, KnowsWhatACallHasDone) {
  using Outcome = FilterCalls::Outcome;
  EXPECT_EQ(FilterCalls::outcome(true, 1, 1), Outcome::kSame);
  EXPECT_EQ(FilterCalls::outcome(false, 1, 1), Outcome::kSame);
  EXPECT_EQ(FilterCalls::outcome(true, 1, 2), Outcome::kInstalled);
  EXPECT_EQ(FilterCalls::outcome(true, 1, 3), Outcome::kUnknown) << "another thread's, too";
  EXPECT_EQ(FilterCalls::outcome(false, 1, 2), Outcome::kUnknown);
  EXPECT_EQ(FilterCalls::outcome(true, std::nullopt, 2), Outcome::kUnknown);
  EXPECT_EQ(FilterCalls::outcome(true, 1, std::nullopt), Outcome::kUnknown);
}

}  // namespace
}  // namespace backtrail::tracee::cache
