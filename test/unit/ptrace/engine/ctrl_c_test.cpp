// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/ctrl_c.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "fake_tasks.hpp"

namespace backtrail::tracee {
namespace {

class CtrlCTest : public testing::Test {
 protected:
  FakeTasks tasks_;
  CtrlC ctrl_c_{tasks_.table()};
  Process& process_ = tasks_.add_process(100_id);
};

TEST_F(CtrlCTest, IsAnsweredByALeaderOfTheFirstProcess) {
  Process& later = tasks_.add_process(90_id);
  tasks_.add_running(process_, 100_id);
  tasks_.add_running(later, 80_id);
  Thread& leader = tasks_.add_running(later, 90_id);
  EXPECT_EQ(ctrl_c_.ask(), &leader);
  EXPECT_TRUE(leader.control().client_stop);
  EXPECT_EQ(leader.control().client_stop_signal, SIGINT);
  EXPECT_FALSE(ctrl_c_.due());
}

TEST_F(CtrlCTest, IsAnsweredByAThreadThatCan) {
  tasks_.add_running(process_, 100_id).control().zombie = true;
  tasks_.add_running(process_, 101_id).control().resumed = false;
  tasks_.add_running(process_, 102_id).control().pending = StopEvent{};
  tasks_.add_running(process_, 103_id).control().vfork_parent = true;
  Process& child = tasks_.add_process(50_id);
  child.hidden = true;
  tasks_.add_running(child, 50_id);
  EXPECT_EQ(ctrl_c_.ask(), nullptr);
  EXPECT_TRUE(ctrl_c_.due());
  Thread& thread = tasks_.add_running(process_, 104_id);
  EXPECT_EQ(ctrl_c_.ask(), &thread);
  EXPECT_FALSE(ctrl_c_.due());
}

TEST_F(CtrlCTest, IsNotDueWithoutAProcess) {
  tasks_.table().remove_process(100_id);
  EXPECT_EQ(ctrl_c_.ask(), nullptr);
  EXPECT_FALSE(ctrl_c_.due());
}

TEST_F(CtrlCTest, WaitsForTheNextThreadThatRunsOn) {
  Thread& thread = tasks_.add_stopped(process_, 100_id);
  ctrl_c_.offer(thread);
  EXPECT_FALSE(thread.control().client_stop) << "there is no Ctrl-C";
  ctrl_c_.expect();
  thread.control().resumed = false;
  ctrl_c_.offer(thread);
  EXPECT_FALSE(thread.control().client_stop);
  thread.control().resumed = true;
  ctrl_c_.offer(thread);
  EXPECT_TRUE(thread.control().client_stop);
  EXPECT_FALSE(ctrl_c_.due()) << "one thread answers";
}

TEST_F(CtrlCTest, IsTakenFromAThread) {
  Thread& thread = tasks_.add_running(process_, 100_id);
  EXPECT_FALSE(CtrlC::take(thread));
  thread.control().client_stop = true;
  EXPECT_FALSE(CtrlC::take(thread)) << "a stop without a signal is no Ctrl-C";
  EXPECT_FALSE(thread.control().client_stop);
  (void)ctrl_c_.ask();
  EXPECT_TRUE(CtrlC::take(thread));
  EXPECT_FALSE(thread.control().client_stop);
  EXPECT_FALSE(CtrlC::take(thread));
}

TEST_F(CtrlCTest, IsForgotten) {
  Thread& thread = tasks_.add_running(process_, 100_id);
  (void)ctrl_c_.ask();
  ctrl_c_.expect();
  ctrl_c_.forget();
  EXPECT_FALSE(ctrl_c_.due());
  EXPECT_FALSE(thread.control().client_stop);
}

TEST_F(CtrlCTest, IsStaleWhereNothingRuns) {
  Thread& thread = tasks_.add_running(process_, 100_id);
  ctrl_c_.expect();
  ctrl_c_.drop_stale();
  EXPECT_TRUE(ctrl_c_.due());
  thread.control().resumed = false;
  ctrl_c_.drop_stale();
  EXPECT_FALSE(ctrl_c_.due());
}

}  // namespace
}  // namespace backtrail::tracee
