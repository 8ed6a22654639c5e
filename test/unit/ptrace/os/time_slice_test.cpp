// SPDX-License-Identifier: Apache-2.0
// The time slice of the calling thread.
#include "ptrace/os/time_slice.hpp"

#include <array>
#include <cstdint>
#include <thread>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kLongerNs = 10'000'000;

/// Returns the calling thread's slice in ns; 0 if the kernel knows none (before Linux 6.12).
std::uint64_t slice() {
  std::array<std::uint64_t, 6> attributes{};  // struct sched_attr; sched_runtime is at 24
  if (::syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0) != 0) return 0;
  return attributes[3];
}

/// Runs `body` in a thread of its own, whose attributes nothing else has touched.
template <typename Body>
void in_thread(Body body) {
  std::thread{body}.join();
}

TEST(TimeSliceTest, IsLengthenedAndRestored) {
  if (slice() == 0) GTEST_SKIP() << "this kernel has no time slices of a thread's own";
  in_thread([] {
    const std::uint64_t before = slice();
    {
      TimeSlice longer;
      EXPECT_EQ(slice(), before);
      longer.lengthen();
      longer.lengthen();
      EXPECT_EQ(slice(), kLongerNs);
      longer.restore();
      EXPECT_EQ(slice(), before);
      longer.lengthen();
      EXPECT_EQ(slice(), kLongerNs);
    }
    EXPECT_EQ(slice(), before);
  });
}

TEST(TimeSliceTest, LeavesOtherPoliciesAlone) {
  in_thread([] {
    const sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
    const std::uint64_t before = slice();
    TimeSlice longer;
    longer.lengthen();
    EXPECT_EQ(slice(), before);
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
  });
}

}  // namespace
}  // namespace backtrail::tracee
