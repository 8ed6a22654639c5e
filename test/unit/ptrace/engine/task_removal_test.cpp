// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/task_removal.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "runner_fixture.hpp"

namespace backtrail::tracee {
namespace {

constexpr auto kSoftware = BreakpointKind::kSoftware;
constexpr TraceeAddr kHere{0x1000};

class TaskRemovalTest : public RunnerFixture {
 protected:
  BreakpointConditions conditions_;
  TaskRemoval removal_{tasks_.table(), conditions_, ctrl_c_, runner_};
  Process& process_ = tasks_.add_process(100_id);
  Thread& leader_ = tasks_.add_running(process_, 100_id);
};

TEST_F(TaskRemovalTest, PassesAThreadsCtrlCOn) {
  ASSERT_EQ(ctrl_c_.ask(), &leader_);
  Thread& other = tasks_.add_stopped(process_, 101_id);
  removal_.remove_thread(leader_);
  EXPECT_EQ(tasks_.table().find_thread(100_id), nullptr);
  ASSERT_TRUE(other.control().pending);
  EXPECT_EQ(other.control().pending->signal, SIGINT);
}

TEST_F(TaskRemovalTest, PassesAProcessesCtrlCToAnotherProcess) {
  Process& child = tasks_.add_process(200_id);
  Thread& other = tasks_.add_stopped(child, 200_id);
  ASSERT_EQ(ctrl_c_.ask(), &leader_);
  removal_.remove_process(100_id);
  ASSERT_TRUE(other.control().pending);
  EXPECT_EQ(other.control().pending->signal, SIGINT);
}

TEST_F(TaskRemovalTest, DropsADueCtrlCWithTheLastProcess) {
  ctrl_c_.expect();
  removal_.remove_process(100_id);
  EXPECT_FALSE(ctrl_c_.due());
}

TEST_F(TaskRemovalTest, ForgetsWhatIsKeptForAProcess) {
  conditions_.set(100_id, kSoftware, kHere, [](ThreadId) { return false; });
  removal_.note_leaving(100_id);
  EXPECT_TRUE(removal_.is_leaving(100_id));
  removal_.remove_process(300_id);
  EXPECT_TRUE(removal_.is_leaving(100_id)) << "it is another one";
  removal_.remove_process(100_id);
  EXPECT_EQ(tasks_.table().find(100_id), nullptr);
  EXPECT_TRUE(removal_.leaving().empty());
  EXPECT_TRUE(conditions_.hold({100_id, 100_id}, kSoftware, kHere));
}

}  // namespace
}  // namespace backtrail::tracee
