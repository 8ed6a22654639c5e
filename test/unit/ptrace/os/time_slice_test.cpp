// SPDX-License-Identifier: Apache-2.0
// The time slice of the calling thread.
#include "ptrace/os/time_slice.hpp"

#include <cstdint>
#include <thread>

#include <sched.h>

#include <gtest/gtest.h>

#include "test/support/own_slice.hpp"

namespace backtrail::tracee {
namespace {

using test::own_slice;

constexpr std::uint64_t kLongerNs = 10'000'000;

/// Runs `body` in a thread of its own, whose attributes nothing else has touched.
template <typename Body>
void in_thread(Body body) {
  std::thread{body}.join();
}

TEST(TimeSliceTest, IsLengthenedAndRestored) {
  if (own_slice() == 0) GTEST_SKIP() << "this kernel has no time slices of a thread's own";
  in_thread([] {
    const std::uint64_t before = own_slice();
    {
      TimeSlice longer;
      EXPECT_EQ(own_slice(), before);
      longer.lengthen();
      longer.lengthen();
      EXPECT_EQ(own_slice(), kLongerNs);
      longer.restore();
      EXPECT_EQ(own_slice(), before);
      longer.lengthen();
      EXPECT_EQ(own_slice(), kLongerNs);
    }
    EXPECT_EQ(own_slice(), before);
  });
}

TEST(TimeSliceTest, LeavesOtherPoliciesAlone) {
  if (own_slice() == 0) GTEST_SKIP() << "this kernel has no time slices of a thread's own";
  in_thread([] {
    const sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
    const std::uint64_t before = own_slice();
    TimeSlice longer;
    longer.lengthen();
    EXPECT_EQ(own_slice(), before);
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
  });
}

}  // namespace
}  // namespace backtrail::tracee
