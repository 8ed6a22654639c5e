// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/end_queue.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

StopEvent end_of_thread(pid_t pid, pid_t tid) {
  return {.thread = {pid, tid}, .kind = StopKind::kThreadExited};
}

StopEvent end_of_process(pid_t pid) {
  return {.thread = {pid, pid}, .kind = StopKind::kProcessExited};
}

TEST(EndQueue, HandsOutTheOldestFirst) {
  EndQueue ends;
  EXPECT_TRUE(ends.empty());
  ends.add(3, end_of_thread(10, 11));
  ends.add(5, UntoldEnd{.event = end_of_process(10)});
  EXPECT_EQ(ends.oldest(), 3U);
  EXPECT_EQ(ends.take().kind, StopKind::kThreadExited);
  EXPECT_EQ(ends.oldest(), 5U);
  EXPECT_EQ(ends.take().kind, StopKind::kProcessExited);
  EXPECT_TRUE(ends.empty());
}

TEST(EndQueue, ListsOnlyProcessesThatTheClientLists) {
  EndQueue ends;
  ends.add(1, end_of_thread(10, 11));
  ends.add(2, end_of_process(20));
  ends.add(3, UntoldEnd{.event = end_of_process(30), .attached = true, .threads = {{30, 30}}});
  // A process may have lost its threads before.
  ends.add(4, UntoldEnd{.event = end_of_process(40)});
  const auto untold = ends.untold();
  ASSERT_EQ(untold.size(), 2U);
  EXPECT_EQ(untold[0]->event.thread.pid, 30);
  EXPECT_TRUE(untold[0]->attached);
  EXPECT_EQ(untold[1]->event.thread.pid, 40);
}

TEST(EndQueue, ForgetsAProcessWithItsThreads) {
  EndQueue ends;
  ends.add(1, end_of_thread(10, 11));
  ends.add(2, end_of_thread(20, 21));
  ends.add(3, UntoldEnd{.event = end_of_process(10)});
  EXPECT_FALSE(ends.forget(30));
  EXPECT_TRUE(ends.forget(10));
  EXPECT_FALSE(ends.forget(20)) << "the client was not to hear of its end";
  EXPECT_TRUE(ends.empty());
}

TEST(EndQueue, ForgetsThreads) {
  EndQueue ends;
  ends.add(1, end_of_thread(10, 11));
  ends.add(2, end_of_process(20));
  ends.forget_threads();
  EXPECT_EQ(ends.take().thread.pid, 20);
  EXPECT_TRUE(ends.empty());
}

TEST(EndQueue, KeepsThreadsThatAreAskedFor) {
  EndQueue ends;
  ends.add(1, end_of_thread(10, 11));
  ends.add(2, end_of_thread(10, 12), true);
  ends.forget_threads();
  EXPECT_EQ(ends.take().thread.tid, 12);
  EXPECT_TRUE(ends.empty());
}

TEST(EndQueue, HoldsThreadsUntilReleased) {
  EndQueue ends;
  ends.add(1, end_of_thread(10, 11));
  ends.add(2, end_of_thread(10, 12));
  ends.add(3, end_of_process(20));
  ends.hold_threads();
  EXPECT_EQ(ends.held(), (std::vector<ThreadId>{{10, 11}, {10, 12}}));
  ends.add(4, end_of_thread(10, 13));
  EXPECT_EQ(ends.oldest(), 3U);
  EXPECT_EQ(ends.take().thread.pid, 20);
  ends.release({10, 12});
  EXPECT_EQ(ends.take().thread.tid, 12);
  EXPECT_EQ(ends.take().thread.tid, 13);
  EXPECT_TRUE(ends.empty());
  ends.forget_held();
  EXPECT_TRUE(ends.held().empty());
}

}  // namespace
}  // namespace backtrail::tracee
