// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using tracee::StopEvent;
using tracee::StopKind;

class NonStopTest : public SessionTest {
 protected:
  NonStopTest() {
    first = target.add_process(1);
    second = target.add_thread(1, 2);
    offer_all();
    EXPECT_EQ(ask("QNonStop:1"), "OK");
  }

  void happen(ThreadId thread, StopKind kind, ThreadId child = {}) {
    StopEvent event;
    event.thread = thread;
    event.kind = kind;
    event.child = child;
    event.signal = SIGINT;
    target.post(event);
    session.on_target_events();
  }

  ThreadId first;
  ThreadId second;
};

TEST_F(NonStopTest, TellsTheTarget) {
  EXPECT_TRUE(target.non_stop);
}

TEST_F(NonStopTest, OutlivesTheConnection) {
  RecordingSink next_sink;
  Session next{target, state, next_sink};
  next.on_packet("vCont;c");
  EXPECT_THAT(next_sink.packets, ::testing::ElementsAre("OK"));
}

TEST_F(NonStopTest, ResumesAreAnsweredAtOnce) {
  EXPECT_EQ(ask("vCont;c"), "OK");
  ASSERT_THAT(target.resumes, SizeIs(1));
  EXPECT_THAT(target.resumes[0], SizeIs(2));
}

TEST_F(NonStopTest, HandsEventsOutOneByOne) {
  ask("vCont;c");
  happen(first, StopKind::kSignal);
  happen(second, StopKind::kStep);
  // Only one notification is sent until the client acknowledges it.
  ASSERT_THAT(sink.notifications, SizeIs(1));
  EXPECT_THAT(sink.notifications[0], StartsWith("Stop:T02"));
  EXPECT_THAT(ask("vStopped"), HasSubstr("thread:p1.2;"));
  EXPECT_EQ(ask("vStopped"), "OK");
  EXPECT_EQ(ask("vStopped"), "OK");
  happen(first, StopKind::kSignal);
  EXPECT_THAT(sink.notifications, SizeIs(2));
}

TEST_F(NonStopTest, DoesNotChangeTheSelectedThread) {
  ask("Hgp1.1");
  ask("vCont;c");
  happen(second, StopKind::kSignal);
  EXPECT_EQ(ask("qC"), "QCp1.1");
}

TEST_F(NonStopTest, WildcardsDoNotDisturb) {
  ask("vCont;c:p1.1");
  ask("vCont;c");
  ASSERT_THAT(target.resumes, SizeIs(2));
  ASSERT_THAT(target.resumes[1], SizeIs(1));
  EXPECT_EQ(target.resumes[1][0].thread, second);
  EXPECT_EQ(ask("vCont;c"), "OK");
  EXPECT_THAT(target.resumes, SizeIs(2));
}

TEST_F(NonStopTest, AThreadWithAQueuedStopStaysStopped) {
  ask("vCont;c");
  happen(first, StopKind::kSignal);
  happen(second, StopKind::kSignal);
  EXPECT_EQ(ask("vCont;c"), "OK");
  EXPECT_THAT(target.resumes, SizeIs(1));
  ask("vStopped");
  ask("vCont;c");
  ASSERT_THAT(target.resumes, SizeIs(2));
  ASSERT_THAT(target.resumes[1], SizeIs(1));
  EXPECT_EQ(target.resumes[1][0].thread, first);
}

TEST_F(NonStopTest, AForksChildIsUnknownUntilItIsTold) {
  ask("vCont;c");
  happen(first, StopKind::kSignal);
  const ThreadId child = target.add_process(7);
  happen(second, StopKind::kFork, child);
  EXPECT_THAT(ask("qXfer:threads:read::0,1000"), ::testing::Not(HasSubstr("p7.7")));
  ask("vCont;c");
  EXPECT_THAT(target.resumes, SizeIs(1));
  EXPECT_THAT(ask("vStopped"), StartsWith("T05fork:p7.7;"));
  EXPECT_EQ(ask("vStopped"), "OK");
  EXPECT_THAT(ask("qXfer:threads:read::0,1000"), HasSubstr("p7.7"));
}

TEST_F(NonStopTest, AForksChildIsNotStoppedBeforeItIsTold) {
  ask("vCont;c");
  happen(first, StopKind::kSignal);
  const ThreadId child = target.add_process(7);
  happen(second, StopKind::kFork, child);
  EXPECT_EQ(ask("vCont;t"), "OK");
  EXPECT_THAT(target.resumes, SizeIs(1));
}

TEST_F(NonStopTest, ChildrenThatWillNotBeToldShareTheirParentsFate) {
  ask("vCont;c");
  const ThreadId other = target.add_process(5);
  happen(other, StopKind::kSignal);
  happen(second, StopKind::kFork, target.add_process(7));
  happen(first, StopKind::kFork, target.add_process(8));
  EXPECT_EQ(ask("vKill;1"), "OK");
  EXPECT_THAT(target.killed, ::testing::ElementsAre(1, 7, 8));
}

TEST_F(NonStopTest, ChildrenThatWillNotBeToldAreLetGoWithTheirParent) {
  ask("vCont;c");
  happen(target.add_process(5), StopKind::kSignal);
  happen(second, StopKind::kFork, target.add_process(7));
  EXPECT_EQ(ask("D;1"), "OK");
  EXPECT_THAT(target.detached, ::testing::ElementsAre(1, 7));
}

TEST_F(NonStopTest, OrdersStopsOfThreadsWhoseStopIsNotQueued) {
  ask("vCont;c:p1.2");
  happen(second, StopKind::kStopped);
  EXPECT_EQ(ask("vCont;t"), "OK");
  ASSERT_THAT(target.resumes, SizeIs(2));
  // The target decides about the first thread; the second one's stop is queued.
  ASSERT_THAT(target.resumes[1], SizeIs(1));
  EXPECT_EQ(target.resumes[1][0].thread, first);
  EXPECT_EQ(target.resumes[1][0].action.kind, tracee::ResumeKind::kStop);
  ASSERT_THAT(sink.notifications, SizeIs(1));
  EXPECT_THAT(sink.notifications[0], StartsWith("Stop:T0006:"));
}

TEST_F(NonStopTest, StatusNamesOneThreadThatJustStopped) {
  EXPECT_THAT(ask("?"), HasSubstr("thread:p1.1;"));
  EXPECT_EQ(ask("vStopped"), "OK");
  EXPECT_EQ(target.stop_alls, 0);
  // An order to stop the other one is answered with its stop.
  EXPECT_THAT(target.known_stops,
              ::testing::ElementsAre(::testing::Pair(first, true), ::testing::Pair(second, false)));
}

TEST_F(NonStopTest, StatusTellsEachStopOnce) {
  ask("vCont;c");
  StopEvent event;
  event.thread = second;
  event.kind = StopKind::kSignal;
  event.signal = SIGINT;
  target.post(event);
  EXPECT_THAT(ask("?"), StartsWith("T02"));
  EXPECT_EQ(ask("vStopped"), "OK");
  EXPECT_THAT(sink.notifications, IsEmpty());
}

TEST_F(NonStopTest, StatusIsOkWhenAllRun) {
  ask("vCont;c");
  EXPECT_EQ(ask("?"), "OK");
}

TEST_F(NonStopTest, InterruptsByPacket) {
  ask("vCont;c");
  EXPECT_EQ(ask("vCtrlC"), "OK");
  EXPECT_EQ(target.interrupts, 1);
}

TEST_F(NonStopTest, ProcessEndsAreNotified) {
  ask("vCont;c");
  happen(first, StopKind::kProcessExited);
  EXPECT_THAT(sink.notifications, ::testing::ElementsAre("Stop:W00;process:1"));
}

TEST_F(NonStopTest, NoResumedIsToldToThoseWhoAsked) {
  happen({}, StopKind::kNoResumed);
  EXPECT_THAT(sink.notifications, ::testing::ElementsAre("Stop:N"));
  EXPECT_EQ(ask("vStopped"), "OK");
  ask("qSupported:multiprocess+");
  happen({}, StopKind::kNoResumed);
  EXPECT_THAT(sink.notifications, SizeIs(1));
}

TEST_F(NonStopTest, AttachedThreadsReportNothingByThemselves) {
  state.extended = true;
  EXPECT_EQ(ask("vAttach;9"), "OK");
  EXPECT_THAT(sink.notifications, IsEmpty());
}

TEST_F(NonStopTest, StartingAProgramIsAnsweredAtOnce) {
  state.extended = true;
  state.launch.program = "/bin/true";
  EXPECT_THAT(ask("vRun;"), StartsWith("T0506:"));
  EXPECT_THAT(sink.notifications, IsEmpty());
}

TEST_F(NonStopTest, ForgetsTheStopsOfDeadProcessesButTheOneInFlight) {
  const ThreadId other = target.add_process(5);
  ask("vCont;c");
  happen(first, StopKind::kSignal);
  happen(second, StopKind::kSignal);
  happen(other, StopKind::kSignal);
  EXPECT_EQ(ask("vKill;1"), "OK");
  EXPECT_THAT(ask("vStopped"), HasSubstr("thread:p5.5;"));
  EXPECT_EQ(ask("vStopped"), "OK");
}

TEST_F(NonStopTest, PacketsAreServedWhileThreadsRun) {
  ask("vCont;c:p1.2");
  EXPECT_EQ(ask("m1000,1"), "00");
  EXPECT_NE(ask("g"), "E01");
  ask("Hgp1.2");
  EXPECT_EQ(ask("g"), "E01");
}

TEST_F(NonStopTest, AThreadThatHasJustEndedMayBeNamed) {
  EXPECT_EQ(ask("vCont;t:p1.99"), "OK");
  EXPECT_EQ(ask("vCont;c:p1.99"), "OK");
}

}  // namespace
}  // namespace backtrail::server
