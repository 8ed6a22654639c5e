// SPDX-License-Identifier: Apache-2.0
// Whether there is a spare CPU, by made-up run times.
#include "ptrace/engine/spare_cpu.hpp"

#include <chrono>
#include <optional>
#include <thread>

#include <sched.h>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

using std::chrono::milliseconds;

cpu_set_t allowed_cpus() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

/// Looks at made-up times, each time when the object wants to look.
class SpareCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const cpu_set_t allowed = allowed_cpus();
    if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one CPU alone";
    // Forget the times that the object has read itself.
    spare_.look(now_, times_);
  }

  /// Lets a part of a hundred pass in which the thread waits, the rest in which it runs.
  /// @return how long the object wants to wait before it looks again.
  milliseconds look(int waits) {
    times_.waited += milliseconds{waits};
    times_.ran += milliseconds{100 - waits};
    now_ += milliseconds{100};
    spare_.look(now_, times_);
    return std::chrono::duration_cast<milliseconds>(spare_.next_look() - now_);
  }

  SpareCpu spare_;
  SpareCpu::Clock::time_point now_ = SpareCpu::Clock::now();
  RunTimes times_{std::chrono::hours{1}, std::chrono::hours{1}};
};

TEST_F(SpareCpuTest, IsThereForAThreadThatHardlyWaits) {
  EXPECT_EQ(look(5), milliseconds{2});
  EXPECT_TRUE(spare_.is_there());
}

TEST_F(SpareCpuTest, AThreadThatWaitsTriesAnotherCpuAndReturns) {
  const cpu_set_t allowed = allowed_cpus();
  (void)look(0);
  EXPECT_EQ(look(50), milliseconds{1});
  EXPECT_TRUE(spare_.is_there());
  EXPECT_EQ(look(50), milliseconds{32});
  EXPECT_FALSE(spare_.is_there());
  const cpu_set_t afterwards = allowed_cpus();
  EXPECT_TRUE(CPU_EQUAL(&allowed, &afterwards));
}

TEST_F(SpareCpuTest, AnotherCpuThatIsIdleIsASpareOne) {
  (void)look(0);
  (void)look(50);
  EXPECT_EQ(look(5), milliseconds{2});
  EXPECT_TRUE(spare_.is_there());
}

TEST_F(SpareCpuTest, PausesGrowUntilALookForRequestsFindsNobodyWaiting) {
  (void)look(0);
  for (const int pause : {32, 64, 128, 256, 256}) {
    EXPECT_EQ(look(50), milliseconds{1});
    EXPECT_EQ(look(50), milliseconds{pause});
    EXPECT_EQ(look(0), milliseconds{2}) << "nobody polled";
  }
  EXPECT_EQ(look(0), milliseconds{2});
  EXPECT_EQ(look(50), milliseconds{1});
  EXPECT_EQ(look(50), milliseconds{32});
}

TEST_F(SpareCpuTest, IsNotThereIfNobodyKnows) {
  (void)look(0);
  spare_.look(now_, std::nullopt);
  EXPECT_FALSE(spare_.is_there());
}

TEST(SpareCpuAlone, IsNeverThereForAThreadThatMayUseOneCpu) {
  std::thread{[] {
    const cpu_set_t allowed = allowed_cpus();
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    SpareCpu spare;
    for (const int waited : {0, 1, 2}) {
      spare.look(SpareCpu::Clock::now(),
                 RunTimes{std::chrono::hours{1 + waited}, std::chrono::hours{waited}});
      EXPECT_FALSE(spare.is_there());
    }
  }}.join();
}

}  // namespace
}  // namespace backtrail::tracee
