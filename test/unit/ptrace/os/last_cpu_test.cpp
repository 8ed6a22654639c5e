// SPDX-License-Identifier: Apache-2.0
// The CPU that a thread ran on last.
#include "ptrace/os/last_cpu.hpp"

#include <thread>

#include <sched.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

TEST(LastCpuTest, FollowsTheThread) {
  std::thread{[] {
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    LastCpu last;
    for (int round = 0; round < 2; ++round) {
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(cpu), &one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
        EXPECT_EQ(last.of(::gettid()), cpu);
      }
    }
  }}.join();
}

TEST(LastCpuTest, KnowsNoneOfAThreadThatHasEnded) {
  LastCpu last;
  pid_t ended = 0;
  std::thread{[&] {
    ended = ::gettid();
    EXPECT_GE(last.of(ended), 0);
  }}.join();
  EXPECT_EQ(last.of(ended), -1);
  EXPECT_GE(last.of(::gettid()), 0);
}

}  // namespace
}  // namespace backtrail::tracee
