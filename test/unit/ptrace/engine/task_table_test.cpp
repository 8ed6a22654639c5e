// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/task_table.hpp"

#include <gtest/gtest.h>

#include "fake_tasks.hpp"

namespace backtrail::tracee {
namespace {

class TaskTableTest : public testing::Test {
 protected:
  FakeTasks tasks_;
  TaskTable& table_ = tasks_.table();
  Process& process_ = tasks_.add_process(100_id);
};

TEST_F(TaskTableTest, FindsProcessesAndThreads) {
  Thread& thread = tasks_.add_running(process_, 101_id);
  EXPECT_EQ(table_.find(100_id), &process_);
  EXPECT_EQ(table_.find(ThreadId{100_id, 101_id}), &thread);
  EXPECT_EQ(table_.find_thread(101_id), &thread);
  EXPECT_EQ(table_.find(101_id), nullptr);
  EXPECT_EQ(table_.find(ThreadId{200_id, 101_id}), nullptr) << "of another process";
  EXPECT_EQ(table_.find_thread(100_id), nullptr);
}

TEST_F(TaskTableTest, ForgetsAThread) {
  Thread& thread = tasks_.add_running(process_, 100_id);
  tasks_.add_running(process_, 101_id);
  table_.remove_thread(thread);
  EXPECT_EQ(table_.find_thread(100_id), nullptr);
  EXPECT_EQ(process_.threads().size(), 1U);
  EXPECT_NE(table_.find_thread(101_id), nullptr);
}

TEST_F(TaskTableTest, ForgetsAProcessWithItsThreadsOnly) {
  tasks_.add_running(process_, 100_id);
  Process& other = tasks_.add_process(200_id);
  tasks_.add_running(other, 200_id);
  table_.remove_process(100_id);
  table_.remove_process(300_id);
  EXPECT_EQ(table_.find(100_id), nullptr);
  EXPECT_EQ(table_.find_thread(100_id), nullptr);
  EXPECT_NE(table_.find_thread(200_id), nullptr);
}

TEST_F(TaskTableTest, ListsProcessesThatTheClientKnows) {
  tasks_.add_process(50_id).hidden = true;
  EXPECT_EQ(table_.known(), std::vector{&process_});
}

TEST_F(TaskTableTest, GivesTheSurvivorOfAnExecTheProcessesId) {
  tasks_.add_running(process_, 100_id);
  Thread& survivor = tasks_.add_running(process_, 101_id);
  tasks_.add_running(process_, 102_id);
  table_.become_new_image(process_, survivor);
  EXPECT_EQ(table_.find_thread(100_id), &survivor);
  EXPECT_EQ(survivor.tid(), 100_id);
  EXPECT_EQ(table_.threads().size(), 1U);
}

TEST_F(TaskTableTest, KnowsWhetherAThreadRunsForTheClient) {
  EXPECT_FALSE(table_.any_running());
  Thread& thread = tasks_.add_running(process_, 100_id);
  EXPECT_TRUE(table_.any_running());
  thread.control().pending = StopEvent{};
  EXPECT_FALSE(table_.any_running()) << "its event waits";
  thread.control().pending.reset();
  thread.control().zombie = true;
  EXPECT_FALSE(table_.any_running()) << "it has ended";
}

}  // namespace
}  // namespace backtrail::tracee
