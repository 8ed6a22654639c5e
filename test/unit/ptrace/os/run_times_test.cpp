// SPDX-License-Identifier: Apache-2.0
// How long a thread ran and waited.
#include "ptrace/os/run_times.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

TEST(RunTimesTest, AreReadFromSchedstat) {
  const auto times = parse_run_times("203345867 1843712 57\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->ran.count(), 203345867);
  EXPECT_EQ(times->waited.count(), 1843712);
}

TEST(RunTimesTest, AKernelThatDoesNotCountTellsNothing) {
  EXPECT_FALSE(parse_run_times("0 0 0\n"));
}

TEST(RunTimesTest, MalformedTextTellsNothing) {
  for (const char* text : {"", " ", "12", "12 ", "12 x", "x 12", "12 -3 4", "-12 3 4",
                           "99999999999999999999 1 1", "1 99999999999999999999 1"}) {
    EXPECT_FALSE(parse_run_times(text)) << text;
  }
}

TEST(RunTimesTest, OwnTimeGrows) {
  const OwnRunTimes own;
  const auto first = own.read();
  if (!first) GTEST_SKIP() << "this kernel does not count run times";
  const auto grown = [&] { return own.read()->ran > first->ran; };
  while (!grown()) {
  }
  EXPECT_GE(own.read()->waited, first->waited);
}

}  // namespace
}  // namespace backtrail::tracee
