// SPDX-License-Identifier: Apache-2.0
// The affinity of the tracing thread amid signals: narrowed, and restored in every case.
#include "ptrace/engine/stop_cpu.hpp"

#include <chrono>

#include <unistd.h>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

using Clock = std::chrono::steady_clock;

cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

class StopCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&original_) < 2) GTEST_SKIP() << "this test needs two CPUs";
  }
  void TearDown() override { ::sched_setaffinity(0, sizeof original_, &original_); }

  /// Signals come as fast as can be. A busy machine may need several batches.
  bool narrow() {
    const auto deadline = Clock::now() + std::chrono::minutes{1};
    while (!cpu_.narrowed() && Clock::now() < deadline) cpu_.note_signal(::getpid());
    return cpu_.narrowed();
  }
  [[nodiscard]] bool is_original() const {
    const cpu_set_t present = affinity();
    return CPU_EQUAL(&present, &original_);
  }

  const cpu_set_t original_ = affinity();
  StopCpu cpu_;
};

TEST_F(StopCpuTest, NarrowsTheAffinityToTheThreadsCpuAndGoesBack) {
  ASSERT_TRUE(narrow());
  cpu_set_t set = affinity();
  EXPECT_EQ(CPU_COUNT(&set), 1);
  EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(::sched_getcpu()), &set));
  cpu_.go_back();
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(is_original());
}

TEST_F(StopCpuTest, GoesBackWhenNoSignalComesAnyMore) {
  ASSERT_TRUE(narrow());
  const auto deadline = Clock::now() + std::chrono::minutes{1};
  while (cpu_.narrowed() && Clock::now() < deadline) cpu_.look();
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(is_original());
}

TEST_F(StopCpuTest, GoesBackForAThreadThatIsGone) {
  constexpr pid_t kNobody = 0x3fff'ffff;
  ASSERT_TRUE(narrow());
  for (int i = 0; i < 1000; ++i) cpu_.note_signal(kNobody);
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(is_original());
}

TEST_F(StopCpuTest, LeavesAnAffinityThatAnotherProcessHasSet) {
  ASSERT_TRUE(narrow());
  cpu_set_t other = original_;
  CPU_CLR(static_cast<std::size_t>(::sched_getcpu()), &other);
  std::size_t first = 0;
  while (!CPU_ISSET(first, &other)) ++first;
  CPU_ZERO(&other);
  CPU_SET(first, &other);
  ASSERT_EQ(::sched_setaffinity(0, sizeof other, &other), 0);
  for (int i = 0; i < 1000; ++i) cpu_.note_signal(::getpid());
  cpu_.go_back();
  const cpu_set_t present = affinity();
  EXPECT_TRUE(CPU_EQUAL(&present, &other));
}

}  // namespace
}  // namespace backtrail::tracee
