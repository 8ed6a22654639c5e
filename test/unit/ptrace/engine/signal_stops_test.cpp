// SPDX-License-Identifier: Apache-2.0
// Signals that no instruction raises. Traps and faults need a program: test/integration.
#include "ptrace/engine/signal_stops.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "runner_fixture.hpp"

namespace backtrail::tracee {
namespace {

class SignalStopsTest : public RunnerFixture {
 protected:
  void SetUp() override { settings_.pass_signals = {SIGUSR1, SIGTRAP}; }
  void stop_for(int signal) {
    FakeTasks::stop_for(thread_, signal);
    signals_.handle(thread_, signal);
  }

  BreakpointConditions conditions_;
  SignalStops signals_{settings_, conditions_, runner_, cpu_sharing_};
  Process& process_ = tasks_.add_process(100_id);
  Thread& thread_ = tasks_.add_stopped(process_, 100_id);
};

TEST_F(SignalStopsTest, PassesSignalsThatTheClientDoesNotWantToSee) {
  EXPECT_TRUE(signals_.is_passed(thread_, SIGUSR1));
  EXPECT_FALSE(signals_.is_passed(thread_, SIGUSR2));
  EXPECT_FALSE(signals_.is_passed(thread_, SIGTRAP)) << "it may be a breakpoint";
  stop_for(SIGUSR1);
  EXPECT_FALSE(events_.any());
}

TEST_F(SignalStopsTest, ReportsEverySignalThatAStepMeets) {
  thread_.control().action.kind = ResumeKind::kStep;
  EXPECT_FALSE(signals_.is_passed(thread_, SIGUSR1));
  thread_.control().action.kind = ResumeKind::kRangeStep;
  EXPECT_FALSE(signals_.is_passed(thread_, SIGUSR1));
}

TEST_F(SignalStopsTest, ReportsOtherSignals) {
  stop_for(SIGUSR2);
  ASSERT_TRUE(thread_.control().pending);
  EXPECT_EQ(thread_.control().pending->kind, StopKind::kSignal);
  EXPECT_EQ(thread_.control().pending->signal, SIGUSR2);
}

TEST_F(SignalStopsTest, PassesASignalOnceThatTheServerHasSent) {
  thread_.control().own_signals.insert(SIGUSR2);
  stop_for(SIGUSR2);
  EXPECT_FALSE(thread_.control().pending);
  stop_for(SIGUSR2);
  EXPECT_TRUE(thread_.control().pending);
}

}  // namespace
}  // namespace backtrail::tracee
