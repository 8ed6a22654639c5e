// SPDX-License-Identifier: Apache-2.0
// The meaning of a thread's departures from its CPU, on a simulated kernel.
#include "ptrace/trace/thread_clock.hpp"

#include <ctime>
#include <thread>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoder/trace/stream_pin.hpp"
#include "test/support/simulated_perf.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kLong = 1'000'000;

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

class ThreadClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // No process has this id, so nothing is known of its switches.
    constexpr pid_t kNobody = 0x3fff'ffff;
    auto opened = ThreadClock::open(kernel_, kNobody, {now_ns(), 0}, [this] { return records_; });
    ASSERT_TRUE(opened);
    clock_ = std::move(*opened);
    begin_ = now_ns();
  }
  void off(std::uint64_t from, std::uint64_t to, bool preempted = false) {
    kernel_.last().switched(true, begin_ + from, preempted);
    kernel_.last().switched(false, begin_ + to);
  }
  /// Waits until after `time`, so that it lies within the times read at the end.
  void wait_until(std::uint64_t time) const {
    while (now_ns() <= begin_ + time) continue;
  }

  test::SimulatedPerf kernel_;
  std::uint64_t records_ = 0;
  std::unique_ptr<ThreadClock> clock_;
  std::uint64_t begin_ = 0;
};

TEST_F(ThreadClockTest, WaitsAndPreemptionsAreTold) {
  off(10, 10 + kLong);
  off(20 + kLong, 20 + 2 * kLong, true);
  wait_until(3 * kLong);
  const auto times = clock_->read();
  ASSERT_THAT(times.off, SizeIs(2));
  EXPECT_EQ(times.off[0].length_ns(), kLong);
  EXPECT_FALSE(times.off[0].preempted);
  EXPECT_TRUE(times.off[1].preempted);
}

TEST_F(ThreadClockTest, AStopOfOursIsNoWait) {
  off(0, 100);  // before it
  clock_->note_stop();
  const std::uint64_t stop = now_ns() - begin_;
  kernel_.last().switched(true, begin_ + stop / 2);
  wait_until(stop + 2 * kLong);
  const std::uint64_t back = now_ns() - begin_;
  kernel_.last().switched(false, begin_ + back);
  off(back + 10, back + 20);
  const auto times = clock_->read();
  EXPECT_THAT(times.off, IsEmpty());
  EXPECT_EQ(times.others, 2U);
  EXPECT_EQ(times.others_ns, 110U);
}

TEST_F(ThreadClockTest, APreemptionOnTheWayToAStopIsNotTheStop) {
  off(0, kLong, true);
  wait_until(2 * kLong);
  clock_->note_stop();
  const std::uint64_t stop = now_ns() - begin_;
  off(stop - 10, stop + kLong);
  off(stop + 2 * kLong, stop + 3 * kLong);
  wait_until(stop + 4 * kLong);
  clock_->note_stop();
  EXPECT_THAT(clock_->read().off, SizeIs(2));
}

/// Returns the number of events opened by the clock of a thread that has waited `waits` times
/// within the last `nanoseconds`.
std::size_t events_of_one_that_waits(int waits, std::uint64_t nanoseconds) {
  test::SimulatedPerf kernel;
  std::size_t out = 0;
  std::thread{[&] {
    constexpr timespec kShort{.tv_sec = 0, .tv_nsec = 1};
    for (int i = 0; i < waits; ++i) ::nanosleep(&kShort, nullptr);
    const ThreadClock::Before before{.since_ns = now_ns() - nanoseconds, .stops = 0};
    const auto clock = ThreadClock::open(kernel, ::gettid(), before, [] { return 0U; });
    EXPECT_TRUE(clock);
    out = kernel.open_events();
  }}.join();
  return out;
}

TEST(ThreadClock, WhoBeginsByWaitingAllTheTimeHasNoEvent) {
  constexpr int kMany = 1000;
  constexpr std::uint64_t kMinute = 60'000'000'000;
  EXPECT_EQ(events_of_one_that_waits(kMany, 0), 0U);
  EXPECT_EQ(events_of_one_that_waits(kMany, kMinute), 1U);
  EXPECT_EQ(events_of_one_that_waits(1, 0), 1U);
}

TEST_F(ThreadClockTest, MarksOfPlacesCountWhatWasHandedOn) {
  records_ = 70;
  clock_->consume_mark(decoder::pin_mark(decoder::pin_record(0, 0)));  // not requested
  const auto times = clock_->read();
  ASSERT_THAT(times.pins, SizeIs(1));
  EXPECT_EQ(times.pins[0].earliest, 70U);
  EXPECT_EQ(times.pins[0].latest, 70U);
}

}  // namespace
}  // namespace backtrail::tracee
