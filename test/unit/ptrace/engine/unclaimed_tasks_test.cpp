// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/unclaimed_tasks.hpp"

#include <string>

#include <gtest/gtest.h>

#include "../fake_proc.hpp"

namespace backtrail::tracee {
namespace {

class Unclaimed : public ::testing::Test {
 protected:
  void add(int pid, int parent) {
    proc.add_process(pid, "x", "PPid:\t" + std::to_string(parent) + "\n");
  }
  void add_thread(int tid, int group, int parent) {
    proc.add(std::to_string(tid) + "/status", "Name:\tx\nTgid:\t" + std::to_string(group) +
                                                  "\nPPid:\t" + std::to_string(parent) + "\n");
  }

  FakeProc proc;
  UnclaimedTasks tasks{ProcFs{proc.root()}};
};

TEST_F(Unclaimed, AreClaimedOnce) {
  add(20, 10);
  EXPECT_FALSE(tasks.claim(20));
  tasks.note(20, WaitStatus{.signal = 5});
  const auto first = tasks.claim(20);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->signal, 5);
  EXPECT_FALSE(tasks.claim(20));
  EXPECT_TRUE(tasks.empty());
}

TEST_F(Unclaimed, WaitForTheirMakers) {
  add(10, 1);
  add(20, 10);
  tasks.note(20, {});
  EXPECT_TRUE(tasks.take_orphans({10}).empty());
  EXPECT_TRUE(tasks.claim(20));
}

TEST_F(Unclaimed, AreOrphansWithoutMakers) {
  add(10, 1);
  add(20, 10);
  add(30, 7);
  tasks.note(20, {});
  add(20, 1);  // its maker has ended
  const auto orphans = tasks.take_orphans({30});
  ASSERT_EQ(orphans.size(), 1U);
  EXPECT_EQ(orphans.front().pid, 20);
  EXPECT_EQ(orphans.front().parent, 10) << "who made it";
  EXPECT_TRUE(tasks.empty());
}

// With CLONE_PARENT the maker is a sibling.
TEST_F(Unclaimed, MayBeClaimedBySiblings) {
  add(10, 7);
  add(20, 7);
  tasks.note(20, {});
  EXPECT_TRUE(tasks.take_orphans({10}).empty());
}

TEST_F(Unclaimed, ThreadsEndWithTheirProcess) {
  add(10, 1);
  add_thread(11, 10, 1);
  tasks.note(11, {});
  EXPECT_TRUE(tasks.take_orphans({}).empty());
  EXPECT_FALSE(tasks.empty());
}

TEST_F(Unclaimed, AreForgottenWhenTheyAreGone) {
  tasks.note(20, {});
  EXPECT_TRUE(tasks.take_orphans({}).empty());
  EXPECT_TRUE(tasks.empty());
}

}  // namespace
}  // namespace backtrail::tracee
