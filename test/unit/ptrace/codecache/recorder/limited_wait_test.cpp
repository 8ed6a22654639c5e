// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/limited_wait.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

TEST(LimitedWait, Ends) {
  LimitedWait wait;
  EXPECT_FALSE(wait.has_to_go_on(false));
  unsigned waits = 0;
  while (wait.has_to_go_on(true)) ++waits;
  EXPECT_EQ(waits, LimitedWait::kMostWaits - 1);
  wait.end();
  EXPECT_TRUE(wait.has_to_go_on(true));
}

}  // namespace
}  // namespace backtrail::tracee::cache
