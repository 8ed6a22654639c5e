// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/turn_cpu.hpp"

#include <sched.h>

#include <gtest/gtest.h>

#include "ptrace/os/resume_here.hpp"

namespace backtrail::tracee {
namespace {

using namespace std::chrono_literals;

class TurnCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "the tests may use one CPU only";
  }
  /// Counts stops of one thread after another, `run` of each, `gap` apart.
  void stop(int stops, int run, TurnCpu::Clock::duration gap, bool spare = true,
            std::uint64_t made = 0) {
    for (int i = 0; i < stops; ++i) {
      now_ += gap;
      translated_ += made;
      turns_.note_stop({.tid = 1000 + i / run, .translated = translated_, .has_spare_cpu = spare},
                       now_, [this] { return others_run_; });
    }
  }
  static cpu_set_t present() {
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    return set;
  }
  [[nodiscard]] bool is_as_before() const {
    const cpu_set_t now = present();
    return CPU_EQUAL(&now, &before_) && !ResumeHere::in_use();
  }

  cpu_set_t before_ = present();
  TurnCpu turns_;
  TurnCpu::Clock::time_point now_ = TurnCpu::Clock::now();
  std::uint64_t translated_ = 0;
  bool others_run_ = false;
};

TEST_F(TurnCpuTest, NarrowsWhileOneThreadAfterTheOtherStopsFast) {
  stop(8, 8, 100us);
  EXPECT_FALSE(turns_.narrowed());
  stop(40, 8, 100us);
  EXPECT_TRUE(turns_.narrowed());
  EXPECT_TRUE(ResumeHere::in_use());
  const cpu_set_t narrow = present();
  EXPECT_EQ(CPU_COUNT(&narrow), 1);
  stop(40, 8, 10ms);
  EXPECT_FALSE(turns_.narrowed());
  EXPECT_TRUE(is_as_before());
}

TEST_F(TurnCpuTest, LeavesThreadsAloneThatStopAtTheSameTime) {
  stop(100, 1, 100us);
  EXPECT_FALSE(turns_.narrowed());
}

TEST_F(TurnCpuTest, LeavesThreadsAloneWhileOthersRun) {
  others_run_ = true;
  stop(100, 8, 100us);
  EXPECT_FALSE(turns_.narrowed());
  others_run_ = false;
  stop(40, 8, 100us);
  EXPECT_TRUE(turns_.narrowed());
  others_run_ = true;
  stop(40, 8, 100us);
  EXPECT_FALSE(turns_.narrowed());
}

TEST_F(TurnCpuTest, SlowerStopsAreEnoughWhereNoCpuIsIdle) {
  stop(40, 8, 1ms);
  EXPECT_FALSE(turns_.narrowed());
  stop(40, 8, 1ms, false);
  EXPECT_TRUE(turns_.narrowed());
}

TEST_F(TurnCpuTest, AThreadThatLacksTranslationsAsksForThemInstead) {
  stop(40, 40, 100us, true, 2);
  EXPECT_FALSE(turns_.narrowed());
  stop(40, 40, 100us, false, 2);
  EXPECT_TRUE(turns_.narrowed()) << "nobody can answer without a CPU";
}

TEST_F(TurnCpuTest, TheSchedulerMayChooseAgainNowAndThen) {
  bool was_wide = false;
  for (int i = 0; i < 100; ++i) {
    stop(16, 16, 100us);
    was_wide |= i > 2 && !turns_.narrowed();
  }
  EXPECT_TRUE(was_wide);
  EXPECT_TRUE(turns_.narrowed());
}

TEST_F(TurnCpuTest, GoesBackWhenAskedOrWhenNothingStopsForLong) {
  stop(40, 8, 100us);
  ASSERT_TRUE(turns_.narrowed());
  turns_.go_back();
  EXPECT_TRUE(is_as_before());
  now_ -= 1s;
  stop(40, 8, 100us);
  ASSERT_TRUE(turns_.narrowed());
  EXPECT_FALSE(turns_.in_turns());
  turns_.look();
  EXPECT_TRUE(is_as_before());
}

TEST_F(TurnCpuTest, ThreadsThatAreResumedHaveTheirAffinityBack) {
  stop(40, 8, 100us);
  ASSERT_TRUE(turns_.narrowed());
  ::sched_setaffinity(0, sizeof before_, &before_);
  {
    const ResumeHere here{0};
    const cpu_set_t narrow = present();
    EXPECT_EQ(CPU_COUNT(&narrow), 1);
  }
  const cpu_set_t now = present();
  EXPECT_TRUE(CPU_EQUAL(&now, &before_));
}

}  // namespace
}  // namespace backtrail::tracee
