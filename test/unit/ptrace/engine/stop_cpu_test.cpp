// SPDX-License-Identifier: Apache-2.0
// The affinities of the tracing thread and of one that gets signals all the time: narrowed to one
// CPU, and restored in every case.
#include "ptrace/engine/stop_cpu.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

#include "ptrace/os/procfs.hpp"
#include "test/support/own_slice.hpp"

namespace backtrail::tracee {
namespace {

using Clock = StopCpu::Clock;
using test::own_slice;
using Pin = std::shared_ptr<CpuPin>;

cpu_set_t affinity(pid_t tid = 0) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(tid, sizeof set, &set), 0);
  return set;
}

bool equal(const cpu_set_t& one, const cpu_set_t& other) {
  return CPU_EQUAL(&one, &other);
}

std::size_t first_cpu(const cpu_set_t& set) {
  std::size_t cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  return cpu;
}

cpu_set_t only(std::size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return set;
}

/// A thread that waits until the end.
class Waiting {
 public:
  Waiting() {
    while (tid_ == 0) std::this_thread::yield();
  }
  [[nodiscard]] pid_t tid() const { return tid_; }

 private:
  std::atomic<pid_t> tid_{0};
  std::jthread thread_{[this](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock{mutex};
    tid_ = ::gettid();
    std::condition_variable_any{}.wait(lock, stop, [] { return false; });
  }};
};

class StopCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&original_) < 2) GTEST_SKIP() << "this test needs two CPUs";
  }
  void TearDown() override { ::sched_setaffinity(0, sizeof original_, &original_); }

  /// Notes signals at this rate.
  void note(int signals, const Pin& pin, bool may_pin, std::chrono::microseconds each) {
    for (int i = 0; i < signals; ++i) cpu_.note_stop(pin, may_pin, now_ += each);
  }
  void note_fast(int signals, const Pin& pin, bool may_pin = true) {
    note(signals, pin, may_pin, std::chrono::microseconds{20});
  }
  [[nodiscard]] bool is_original(pid_t tid = 0) const { return equal(affinity(tid), original_); }

  const cpu_set_t original_ = affinity();
  Clock::time_point now_ = Clock::now();
  Waiting thread_;
  Pin pin_ = std::make_shared<CpuPin>(thread_.tid());
  StopCpu cpu_;
};

TEST_F(StopCpuTest, NarrowsBothToOneCpuAndGoesBack) {
  note_fast(100, pin_);
  ASSERT_TRUE(cpu_.narrowed());
  EXPECT_TRUE(pin_->active());
  const cpu_set_t set = affinity();
  EXPECT_EQ(CPU_COUNT(&set), 1);
  EXPECT_TRUE(equal(affinity(thread_.tid()), set));
  cpu_.go_back();
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_FALSE(pin_->active());
  EXPECT_TRUE(is_original());
  EXPECT_TRUE(is_original(thread_.tid()));
}

TEST_F(StopCpuTest, HasALongerTimeSliceWhileNarrowed) {
  const std::uint64_t before = own_slice();
  if (before == 0) GTEST_SKIP() << "this kernel has no time slices of a thread's own";
  note_fast(100, pin_);
  EXPECT_GT(own_slice(), before);
  cpu_.go_back();
  EXPECT_EQ(own_slice(), before);
}

TEST_F(StopCpuTest, FollowsAThreadWhoseAffinityMustStay) {
  const cpu_set_t last = only(first_cpu(original_));
  ASSERT_EQ(::sched_setaffinity(thread_.tid(), sizeof last, &last), 0);
  note_fast(1000, pin_, false);
  ASSERT_TRUE(cpu_.narrowed());
  EXPECT_FALSE(pin_->active());
  // The thread sleeps, and may have slept on another CPU before.
  const auto stat = ProcFs{}.stat(thread_.tid());
  ASSERT_TRUE(stat);
  EXPECT_TRUE(equal(affinity(), only(static_cast<std::size_t>(stat->processor))));
}

TEST_F(StopCpuTest, LeavesSlowSignalsAlone) {
  note(1000, pin_, true, std::chrono::milliseconds{1});
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(is_original(thread_.tid()));
  note_fast(100, pin_);
  EXPECT_TRUE(cpu_.narrowed());
  note(100, pin_, true, std::chrono::milliseconds{1});
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(is_original());
  EXPECT_TRUE(is_original(thread_.tid()));
}

TEST_F(StopCpuTest, NarrowsForSlowerStepsToo) {
  const auto step = [&](int steps, std::chrono::milliseconds each) {
    for (int i = 0; i < steps; ++i) {
      cpu_.note_stop(pin_, true, now_ += each, StopCpu::kBetweenSteps);
    }
  };
  step(100, std::chrono::milliseconds{1});
  EXPECT_TRUE(cpu_.narrowed());
  EXPECT_TRUE(pin_->active());
  step(100, std::chrono::milliseconds{15});
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(is_original(thread_.tid()));
}

TEST_F(StopCpuTest, GoesBackWhenNoSignalComesAnyMore) {
  note_fast(100, pin_);
  ASSERT_TRUE(cpu_.narrowed());
  const auto deadline = Clock::now() + std::chrono::minutes{1};
  while (cpu_.narrowed() && Clock::now() < deadline) cpu_.look();
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(is_original());
  EXPECT_TRUE(is_original(thread_.tid()));
}

TEST_F(StopCpuTest, GoesBackWhenTheLastSignalComesWhileTheSchedulerChooses) {
  int signals = 0;
  do {
    note_fast(1, pin_);
  } while (++signals < 10'000 && (cpu_.narrowed() || !pin_->active()));
  ASSERT_TRUE(pin_->active());
  ASSERT_TRUE(cpu_.narrows());
  const auto deadline = Clock::now() + std::chrono::minutes{1};
  while (cpu_.narrows() && Clock::now() < deadline) cpu_.look();
  EXPECT_TRUE(is_original(thread_.tid()));
}

TEST_F(StopCpuTest, GivesAThreadItsAffinityBackForAnother) {
  const Waiting second;
  const Pin other = std::make_shared<CpuPin>(second.tid());
  note_fast(100, pin_);
  note_fast(1, other);
  EXPECT_TRUE(is_original(thread_.tid()));
  note_fast(100, other);
  EXPECT_TRUE(cpu_.narrowed());
  EXPECT_TRUE(other->active());
}

TEST_F(StopCpuTest, PinsAgainAfterTheThreadHasShownItsAffinity) {
  note_fast(100, pin_);
  pin_->release();
  EXPECT_TRUE(is_original(thread_.tid()));
  note_fast(100, pin_);
  EXPECT_TRUE(pin_->active());
}

TEST_F(StopCpuTest, LetsTheSchedulerChooseNowAndThen) {
  bool was_free = false;
  for (int i = 0; i < 1000; ++i) {
    note_fast(1, pin_);
    was_free = was_free || (i > 100 && !cpu_.narrowed() && is_original());
  }
  EXPECT_TRUE(was_free);
}

TEST_F(StopCpuTest, KeepsToTheCpusOfTheThread) {
  const cpu_set_t first = only(first_cpu(original_));
  ASSERT_EQ(::sched_setaffinity(thread_.tid(), sizeof first, &first), 0);
  note_fast(100, pin_);
  EXPECT_TRUE(equal(affinity(), first));
  cpu_.go_back();
  EXPECT_TRUE(equal(affinity(thread_.tid()), first));
  EXPECT_TRUE(is_original());
}

TEST_F(StopCpuTest, DoesNothingIfThereIsNoCommonCpu) {
  const std::size_t cpu = first_cpu(original_);
  const cpu_set_t first = only(cpu);
  cpu_set_t others = original_;
  CPU_CLR(cpu, &others);
  ASSERT_EQ(::sched_setaffinity(thread_.tid(), sizeof first, &first), 0);
  ASSERT_EQ(::sched_setaffinity(0, sizeof others, &others), 0);
  note_fast(1000, pin_);
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(equal(affinity(), others));
  EXPECT_TRUE(equal(affinity(thread_.tid()), first));
}

TEST_F(StopCpuTest, GoesBackForAThreadThatIsGone) {
  constexpr pid_t kNobody = 0x3fff'ffff;
  const auto nobody = std::make_shared<CpuPin>(kNobody);
  note_fast(100, pin_);
  note_fast(1000, nobody);
  EXPECT_FALSE(cpu_.narrowed());
  note_fast(1000, nobody, false);
  EXPECT_FALSE(cpu_.narrowed());
  EXPECT_TRUE(is_original());
  EXPECT_TRUE(is_original(thread_.tid()));
}

TEST_F(StopCpuTest, LeavesAnAffinityThatAnotherProcessHasSet) {
  note_fast(100, pin_);
  ASSERT_TRUE(pin_->active());
  cpu_set_t other = original_;
  CPU_CLR(first_cpu(affinity()), &other);
  other = only(first_cpu(other));
  ASSERT_EQ(::sched_setaffinity(0, sizeof other, &other), 0);
  ASSERT_EQ(::sched_setaffinity(thread_.tid(), sizeof other, &other), 0);
  note_fast(100, pin_);
  cpu_.go_back();
  EXPECT_TRUE(equal(affinity(), other));
  EXPECT_TRUE(equal(affinity(thread_.tid()), other));
}

}  // namespace
}  // namespace backtrail::tracee
