// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/signal_slice.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

using namespace std::chrono_literals;
using Clock = SignalSlice::Clock;

constexpr pid_t kRecorded = 100;
constexpr std::uint64_t kAlarm = std::uint64_t{1} << (SIGALRM - 1);

siginfo_t signal_of(int number, int code = SI_KERNEL, pid_t sender = 0) {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = code;
  info.si_pid = sender;
  return info;
}

class SignalSliceTest : public testing::Test {
 protected:
  void deliver(const siginfo_t& info) {
    slice_.note_delivery(
        info, [](pid_t pid) { return pid == kRecorded; }, now_);
  }
  std::uint64_t come_back(std::uint64_t mask = 0) { return slice_.note_return(mask, now_); }
  /// The thread runs for `runs`, then handling the signal takes `takes`.
  std::uint64_t handle(Clock::duration runs, const siginfo_t& info, Clock::duration takes = 1ms,
                       std::uint64_t mask = 0) {
    now_ += runs;
    deliver(info);
    now_ += takes;
    return come_back(mask);
  }

  SignalSlice slice_;
  Clock::time_point now_ = Clock::now();
};

TEST_F(SignalSliceTest, HoldsWhatLeavesTheThreadNoTime) {
  EXPECT_EQ(handle(1s, signal_of(SIGALRM)), 0U);
  EXPECT_FALSE(slice_.active());
  EXPECT_EQ(handle(10us, signal_of(SIGALRM), 3ms), kAlarm);
  EXPECT_TRUE(slice_.active());
  EXPECT_EQ(slice_.held(), kAlarm);
}

TEST_F(SignalSliceTest, HoldsNothingThatLeavesItTime) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(handle(6ms, signal_of(SIGALRM)), 0U);
  EXPECT_EQ(handle(10us, signal_of(SIGALRM)), kAlarm);
  slice_.forget();
  EXPECT_EQ(handle(6ms, signal_of(SIGALRM)), 0U);
}

TEST_F(SignalSliceTest, LetsNoSignalBeVeryLate) {
  now_ = Clock::now() + 1h;
  (void)handle(1s, signal_of(SIGALRM), 1s);
  EXPECT_EQ(handle(10us, signal_of(SIGALRM), 1s), kAlarm);
  EXPECT_EQ(slice_.over_at(), now_ + 20ms);
}

TEST_F(SignalSliceTest, HoldsNothingThatRecordedProcessesSend) {
  for (const int code : {SI_USER, SI_TKILL, SI_QUEUE}) {
    EXPECT_EQ(handle(10us, signal_of(SIGUSR1, code, kRecorded)), 0U);
    EXPECT_EQ(handle(10us, signal_of(SIGUSR1, code, kRecorded)), 0U);
  }
  (void)handle(1s, signal_of(SIGUSR1, SI_USER, kRecorded + 1));
  EXPECT_NE(handle(10us, signal_of(SIGUSR1, SI_USER, kRecorded + 1)), 0U);
}

TEST_F(SignalSliceTest, CallsNothingHeldThatTheThreadBlocks) {
  (void)handle(1s, signal_of(SIGALRM));
  EXPECT_EQ(handle(10us, signal_of(SIGALRM), 1ms, kAlarm), kAlarm);
  EXPECT_FALSE(slice_.active());
}

TEST_F(SignalSliceTest, KnowsWhichSignalsAreNeverLate) {
  for (const int number :
       {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGSTOP, SIGCONT, SIGCHLD}) {
    EXPECT_FALSE(SignalSlice::may_hold(number)) << number;
  }
  EXPECT_TRUE(SignalSlice::may_hold(SIGALRM));
}

}  // namespace
}  // namespace backtrail::tracee
