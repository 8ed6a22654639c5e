// SPDX-License-Identifier: Apache-2.0
#include "server/session/events.hpp"

#include <csignal>

#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using tracee::StopEvent;
using tracee::StopKind;

class StatusTest : public SessionTest {};

TEST_F(StatusTest, NothingThereIsAnExit) {
  EXPECT_EQ(ask("?"), "W00");
}

TEST_F(StatusTest, AFreshProcessLooksLikeATrap) {
  target.add_process(1);
  offer_all();
  EXPECT_THAT(ask("?"), StartsWith("T0506:"));
  EXPECT_EQ(target.stop_alls, 1);
}

TEST_F(StatusTest, StopsWhatRunsForANewClient) {
  const ThreadId thread = target.add_process(1);
  target.thread(thread).running = true;
  EXPECT_THAT(ask("?"), StartsWith("T0006:"));
  EXPECT_FALSE(target.thread(thread).running);
}

TEST_F(StatusTest, PrefersTheThreadWithSomethingToTell) {
  target.add_process(1);
  const ThreadId second = target.add_thread(1, 2);
  target.thread(second).last_stop.kind = StopKind::kSignal;
  target.thread(second).last_stop.signal = SIGSEGV;
  offer_all();
  const std::string reply = ask("?");
  EXPECT_THAT(reply, StartsWith("T0b06:"));
  EXPECT_THAT(reply, HasSubstr("thread:p1.2;"));
  EXPECT_EQ(ask("qC"), "QCp1.2");
}

TEST_F(StatusTest, ANewConnectionHearsOfTheThreadThatWasToldLast) {
  const ThreadId parent = target.add_process(1);
  const ThreadId child = target.add_process(2);
  offer_all();
  // The parent's fork was reported to the first client; it must not be reported again.
  target.thread(parent).last_stop = {
      .thread = parent, .kind = StopKind::kFork, .signal = 0, .child = child};
  ask("vCont;c");
  after({.thread = child, .kind = StopKind::kSoftwareBreakpoint});
  RecordingSink second_sink;
  Session second{target, state, second_sink};
  second.on_packet("qSupported:multiprocess+;swbreak+;fork-events+");
  second.on_packet("?");
  ASSERT_FALSE(second_sink.packets.empty());
  EXPECT_THAT(second_sink.packets.back(), HasSubstr("thread:p2.2;"));
}

TEST_F(StatusTest, AnEventThatWaitsIsTheAnswer) {
  const ThreadId thread = target.add_process(1);
  StopEvent event;
  event.thread = thread;
  event.kind = StopKind::kSignal;
  event.signal = SIGINT;
  target.post(event);
  EXPECT_THAT(ask("?"), StartsWith("T02"));
  EXPECT_TRUE(target.events.empty());
}

TEST(ForwardEvents, PassesSignalsOn) {
  test::FakeTarget target;
  const ThreadId thread = target.add_process(1);
  StopEvent event;
  event.thread = thread;
  event.kind = StopKind::kSignal;
  event.signal = SIGUSR1;
  target.post(event);
  EXPECT_TRUE(forward_events(target));
  ASSERT_EQ(target.resumes.size(), 1U);
  EXPECT_EQ(target.resumes[0][0].thread, thread);
  EXPECT_EQ(target.resumes[0][0].action.signal, SIGUSR1);
}

TEST(ForwardEvents, SaysWhenTheLastProcessIsGone) {
  test::FakeTarget target;
  StopEvent event;
  event.thread = target.add_process(1);
  event.kind = StopKind::kProcessExited;
  target.post(event);
  EXPECT_FALSE(forward_events(target));
}

}  // namespace
}  // namespace backtrail::server
