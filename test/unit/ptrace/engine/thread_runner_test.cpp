// SPDX-License-Identifier: Apache-2.0
// What a stopped thread does instead of running on. That it runs on is seen with real programs, in
// test/integration.
#include "ptrace/engine/thread_runner.hpp"

#include <array>
#include <csignal>

#include <gtest/gtest.h>

#include "runner_fixture.hpp"

namespace backtrail::tracee {
namespace {

class ThreadRunnerTest : public RunnerFixture {
 protected:
  void order(Thread& thread, const ResumeAction& action) {
    const std::array orders{std::pair{thread.id(), action}};
    runner_.resume(orders);
  }

  Process& process_ = tasks_.add_process(100_id);
  Thread& one_ = tasks_.add_stopped(process_, 100_id);
  Thread& other_ = tasks_.add_stopped(process_, 101_id);
};

TEST_F(ThreadRunnerTest, LeavesAThreadStoppedThatTheEngineWantsStopped) {
  one_.control().stop_wanted = true;
  runner_.go(one_);
  EXPECT_FALSE(one_.control().stop_wanted) << "the stop has come";
  EXPECT_FALSE(events_.any());
}

TEST_F(ThreadRunnerTest, ReportsAStopThatTheClientWants) {
  one_.control().client_stop = true;
  runner_.go(one_);
  ASSERT_TRUE(one_.control().pending);
  EXPECT_EQ(one_.control().pending->kind, StopKind::kStopped);
  EXPECT_FALSE(one_.control().client_stop);
}

TEST_F(ThreadRunnerTest, ReportsCtrlCAtOnceForAStoppedThread) {
  runner_.interrupt();
  ASSERT_TRUE(one_.control().pending);
  EXPECT_EQ(one_.control().pending->kind, StopKind::kSignal);
  EXPECT_EQ(one_.control().pending->signal, SIGINT);
}

TEST_F(ThreadRunnerTest, PassesCtrlCOnIfAnotherEventComesFirst) {
  ASSERT_EQ(ctrl_c_.ask(), &one_);
  runner_.post(one_, {.kind = StopKind::kStep});
  EXPECT_EQ(one_.control().pending->kind, StopKind::kStep);
  ASSERT_TRUE(other_.control().pending);
  EXPECT_EQ(other_.control().pending->signal, SIGINT);
}

TEST_F(ThreadRunnerTest, AnswersADueCtrlCWithTheNextThreadThatIsResumed) {
  one_.control().resumed = other_.control().resumed = false;
  runner_.interrupt();
  EXPECT_TRUE(ctrl_c_.due());
  order(other_, {});
  ASSERT_TRUE(other_.control().pending);
  EXPECT_EQ(other_.control().pending->signal, SIGINT);
  EXPECT_FALSE(ctrl_c_.due());
}

TEST_F(ThreadRunnerTest, ResumesNothingInAllStopWhileAnEventWaits) {
  other_.control().resumed = false;
  events_.put(one_, {.kind = StopKind::kStep});
  other_.control().no_progress_at = TraceeAddr{1};
  order(other_, {});
  EXPECT_TRUE(other_.control().resumed);
  EXPECT_TRUE(other_.control().no_progress_at) << "it was not set going";
}

TEST_F(ThreadRunnerTest, TellsTheClientThatAThreadWasStoppedAlready) {
  settings_.non_stop = true;
  one_.control().resumed = false;
  order(one_, {.kind = ResumeKind::kStop});
  ASSERT_TRUE(one_.control().pending);
  EXPECT_EQ(one_.control().pending->kind, StopKind::kStopped);
  ASSERT_TRUE(events_.take());
  order(one_, {.kind = ResumeKind::kStop});
  EXPECT_FALSE(one_.control().pending) << "the client knows";
}

TEST_F(ThreadRunnerTest, DropsAnEventThatIsNoNewsAnyMore) {
  one_.control().resumed = false;
  events_.put(one_, {.kind = StopKind::kStopped});
  order(one_, {});
  EXPECT_FALSE(one_.control().pending);
  other_.control().resumed = false;
  events_.put(other_, {.kind = StopKind::kSignal, .signal = SIGUSR1});
  order(other_, {});
  EXPECT_TRUE(other_.control().pending) << "a signal is not to be lost";
}

TEST_F(ThreadRunnerTest, LetsThreadsGoOnThatAreStoppedForNoReasonOfTheClient) {
  one_.control().client_stop = true;
  other_.control().client_stop = true;
  other_.control().resumed = false;
  Thread& running = tasks_.add_running(process_, 102_id);
  running.control().stop_wanted = true;
  runner_.let_go_on(100_id);
  EXPECT_TRUE(one_.control().pending) << "it was to run on";
  EXPECT_FALSE(other_.control().pending);
  EXPECT_FALSE(running.control().stop_wanted) << "nobody wants it stopped later";
}

}  // namespace
}  // namespace backtrail::tracee
