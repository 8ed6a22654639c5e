// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/step_over_queue.hpp"

#include <gtest/gtest.h>

#include "fake_tasks.hpp"

namespace backtrail::tracee {
namespace {

using Ids = std::vector<ThreadId>;

class StepOverQueueTest : public testing::Test {
 protected:
  FakeTasks tasks_;
  StepOverQueue queue_;
  Process& process_ = tasks_.add_process(100_id);
  Thread& one_ = tasks_.add_stopped(process_, 100_id);
  Thread& other_ = tasks_.add_stopped(process_, 101_id);
};

TEST_F(StepOverQueueTest, KeepsTheOrderOfArrival) {
  EXPECT_TRUE(queue_.empty());
  queue_.add(other_);
  queue_.add(one_);
  EXPECT_EQ(queue_.first_process(), 100_id);
  EXPECT_EQ(queue_.take(100_id, tasks_.table()), (Ids{{100_id, 101_id}, {100_id, 100_id}}));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(StepOverQueueTest, TakesAThreadOnce) {
  queue_.add(one_);
  queue_.add(one_);
  EXPECT_EQ(queue_.take(100_id, tasks_.table()).size(), 1U);
  queue_.add(one_);
  EXPECT_EQ(queue_.take(100_id, tasks_.table()).size(), 1U) << "it may wait again";
}

TEST_F(StepOverQueueTest, LeavesOtherProcessesWaiting) {
  Process& child = tasks_.add_process(200_id);
  queue_.add(one_);
  queue_.add(tasks_.add_stopped(child, 200_id));
  queue_.add(other_);
  EXPECT_EQ(queue_.take(100_id, tasks_.table()), (Ids{{100_id, 100_id}, {100_id, 101_id}}));
  EXPECT_EQ(queue_.first_process(), 200_id);
}

TEST_F(StepOverQueueTest, DropsThreadsThatMayNotRun) {
  Thread& third = tasks_.add_stopped(process_, 102_id);
  Thread& fourth = tasks_.add_stopped(process_, 103_id);
  for (Thread* thread : {&one_, &other_, &third, &fourth}) queue_.add(*thread);
  one_.control().resumed = false;
  other_.control().pending = StopEvent{};
  tasks_.table().remove_thread(third);
  EXPECT_EQ(queue_.take(100_id, tasks_.table()), (Ids{{100_id, 103_id}}));
  EXPECT_FALSE(one_.control().queued) << "it queues again when it is resumed";
}

}  // namespace
}  // namespace backtrail::tracee
