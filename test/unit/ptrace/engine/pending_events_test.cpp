// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/pending_events.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "fake_tasks.hpp"

namespace backtrail::tracee {
namespace {

class PendingEventsTest : public testing::Test {
 protected:
  /// Takes an event and returns its thread; 0 if there is none.
  pid_t take() {
    const auto event = events_.take();
    return event ? event->thread.tid : 0;
  }

  FakeTasks tasks_;
  EngineSettings settings_;
  PendingEvents events_{tasks_.table(), settings_};
  Process& process_ = tasks_.add_process(100_id);
  Thread& one_ = tasks_.add_stopped(process_, 100_id);
  Thread& other_ = tasks_.add_stopped(process_, 101_id);
};

TEST_F(PendingEventsTest, ComeOldestFirst) {
  EXPECT_FALSE(events_.any());
  events_.put(other_, {.kind = StopKind::kStep});
  events_.note_untraced_end({.thread = {300_id, 300_id}, .kind = StopKind::kProcessExited});
  events_.put(one_, {.kind = StopKind::kStep});
  EXPECT_TRUE(events_.any());
  EXPECT_EQ(take(), 101_id);
  EXPECT_EQ(take(), 300_id);
  EXPECT_EQ(take(), 100_id);
  EXPECT_EQ(take(), 0);
}

TEST_F(PendingEventsTest, AreKnownToTheClientOnceTaken) {
  events_.put(one_, {.kind = StopKind::kSignal, .signal = SIGUSR1});
  ASSERT_TRUE(events_.take());
  const ThreadControl& control = one_.control();
  EXPECT_FALSE(control.pending);
  EXPECT_FALSE(control.resumed);
  EXPECT_TRUE(control.stop_known);
  EXPECT_EQ(control.last_stop.thread, one_.id());
  EXPECT_EQ(control.last_stop.signal, SIGUSR1);
}

TEST_F(PendingEventsTest, OfClonesMakeTheNewThreadKnown) {
  other_.control().untold = true;
  events_.put(one_, {.kind = StopKind::kThreadCloned, .child = other_.id()});
  EXPECT_EQ(take(), 100_id);
  EXPECT_FALSE(other_.control().untold);
  EXPECT_TRUE(other_.control().stop_known);
  EXPECT_FALSE(one_.control().untold);
}

TEST_F(PendingEventsTest, OfThreadsThatEndComeWhenAskedFor) {
  events_.note_thread_end(other_, 0);
  EXPECT_FALSE(events_.any());
  other_.control().options.exit = true;
  events_.note_thread_end(other_, 3);
  events_.forget_thread_ends();
  EXPECT_EQ(take(), 101_id);
}

TEST_F(PendingEventsTest, OfForksTellThatTheChildIsStopped) {
  Process& child = tasks_.add_process(200_id);
  Thread& thread = tasks_.add_stopped(child, 200_id);
  child.hidden = true;
  events_.put(one_, {.kind = StopKind::kFork, .child = thread.id()});
  EXPECT_FALSE(thread.control().stop_known);
  EXPECT_EQ(take(), 100_id);
  EXPECT_FALSE(child.hidden);
  EXPECT_TRUE(thread.control().stop_known);
}

TEST_F(PendingEventsTest, ReplaceOneAnother) {
  events_.put(one_, {.kind = StopKind::kStep});
  events_.put(other_, {.kind = StopKind::kStep});
  events_.put(one_, {.kind = StopKind::kExiting});
  EXPECT_EQ(take(), 101_id);
  EXPECT_EQ(take(), 100_id);
  EXPECT_EQ(one_.control().last_stop.kind, StopKind::kExiting);
  EXPECT_FALSE(events_.any());
}

TEST_F(PendingEventsTest, CanBeDropped) {
  events_.put(one_, {.kind = StopKind::kStep});
  events_.drop(one_);
  EXPECT_FALSE(one_.control().pending);
  EXPECT_FALSE(events_.any());
}

TEST_F(PendingEventsTest, GoWithTheirThread) {
  events_.put(one_, {.kind = StopKind::kStep});
  tasks_.table().remove_thread(one_);
  EXPECT_FALSE(events_.any());
  // Another thread may get the id.
  tasks_.add_stopped(process_, 100_id);
  EXPECT_FALSE(events_.any());
}

TEST_F(PendingEventsTest, WaitUntilTheThreadIsResumed) {
  one_.control().resumed = false;
  events_.put(one_, {.kind = StopKind::kStep});
  EXPECT_FALSE(events_.any());
  events_.put(other_, {.kind = StopKind::kStep});
  EXPECT_EQ(take(), 101_id);
  one_.control().resumed = true;
  EXPECT_EQ(take(), 100_id);
}

TEST_F(PendingEventsTest, MakeAChildKnown) {
  Process& child = tasks_.add_process(200_id);
  Thread& first = tasks_.add_stopped(child, 200_id);
  child.hidden = true;
  events_.put(first, {.kind = StopKind::kStep});
  EXPECT_FALSE(events_.any()) << "the client does not know it";
  events_.put(one_, {.kind = StopKind::kFork, .child = {200_id, 200_id}});
  EXPECT_EQ(take(), 100_id);
  EXPECT_FALSE(child.hidden);
  EXPECT_EQ(take(), 200_id);
}

TEST_F(PendingEventsTest, HoldThreadsInAllStopOnly) {
  EXPECT_FALSE(events_.come_first());
  events_.put(one_, {.kind = StopKind::kStep});
  EXPECT_TRUE(events_.come_first());
  settings_.non_stop = true;
  EXPECT_FALSE(events_.come_first());
}

TEST_F(PendingEventsTest, TellOfEndsOfThreadsToWhoeverListens) {
  events_.note_thread_end(one_, 1);
  EXPECT_FALSE(events_.any());
  settings_.reported.threads = true;
  events_.note_thread_end(other_, 2);
  const auto event = events_.take();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kThreadExited);
  EXPECT_EQ(event->thread.tid, 101_id);
  EXPECT_EQ(event->exit_code, 2);
  events_.note_thread_end(other_, 2);
  events_.forget_thread_ends();
  EXPECT_FALSE(events_.any());
}

TEST_F(PendingEventsTest, ListAnEndedProcessUntilItIsTold) {
  events_.note_end(process_, {.thread = {100_id, 100_id}, .kind = StopKind::kProcessExited});
  const auto untold = events_.untold_ends();
  ASSERT_EQ(untold.size(), 1U);
  EXPECT_EQ(untold[0]->threads, (std::vector<ThreadId>{{100_id, 100_id}, {100_id, 101_id}}));
  EXPECT_TRUE(events_.forget(100_id));
  EXPECT_FALSE(events_.any());
}

TEST_F(PendingEventsTest, TellOnceThatNoThreadIsResumed) {
  EXPECT_FALSE(events_.take_no_resumed()) << "nothing has ended";
  one_.control().resumed = false;
  events_.note_thread_end(other_, 0);
  EXPECT_FALSE(events_.take_no_resumed()) << "a thread is resumed";
  tasks_.table().remove_thread(other_);
  // The thread that is left is stopped, but the kernel has no task of that id in a stop: it may be
  // ending, so what comes next is its end.
  ASSERT_TRUE(one_.is_gone());
  EXPECT_FALSE(events_.take_no_resumed());
  one_.control().zombie = true;
  const auto event = events_.take_no_resumed();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kNoResumed);
  EXPECT_FALSE(events_.take_no_resumed());
}

TEST_F(PendingEventsTest, DoNotTellThatNoThreadIsResumedAfterAnotherEvent) {
  one_.control().resumed = false;
  one_.control().zombie = true;
  events_.note_thread_end(other_, 0);
  tasks_.table().remove_thread(other_);
  events_.forget_resumed_ended();
  EXPECT_FALSE(events_.take_no_resumed());
}

}  // namespace
}  // namespace backtrail::tracee
