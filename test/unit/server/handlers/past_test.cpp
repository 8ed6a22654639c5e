// SPDX-License-Identifier: Apache-2.0
// bs and bc, and registers and memory in the past.
#include <csignal>

#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tracee::ResumeKind;
using tracee::StopEvent;
using tracee::StopKind;

class PastTest : public SessionTest {
 protected:
  PastTest() : SessionTest{{.past_control = true}} {
    first = target.add_process(1);
    second = target.add_thread(1, 2);
  }

  std::string after(ThreadId thread, StopKind kind) {
    return SessionTest::after(StopEvent{.thread = thread, .kind = kind});
  }

  ThreadId first;
  ThreadId second;
};

TEST_F(PastTest, IsOffered) {
  const std::string features = ask("qSupported:multiprocess+");
  EXPECT_THAT(features, HasSubstr(";ReverseStep+;ReverseContinue+"));
  // gdb evaluates conditions itself: it can report a value that is not available.
  EXPECT_THAT(features, Not(HasSubstr("ConditionalBreakpoints")));
}

TEST_F(PastTest, TheSelectedThreadGoesBack) {
  ask("qSupported:multiprocess+");
  ask("Hgp1.2");
  EXPECT_EQ(ask("bs"), "(none)");
  ASSERT_EQ(target.moved_back.size(), 1U);
  EXPECT_EQ(target.moved_back[0].thread, second);
  EXPECT_EQ(target.moved_back[0].how, ResumeKind::kStep);
  EXPECT_THAT(after(second, StopKind::kStep), ::testing::StartsWith("T05"));
}

TEST_F(PastTest, TheThreadOfHcComesBeforeThatOfHg) {
  ask("qSupported:multiprocess+");
  ask("Hgp1.2");
  ask("Hcp1.1");
  EXPECT_EQ(ask("bc"), "(none)");
  ASSERT_EQ(target.moved_back.size(), 1U);
  EXPECT_EQ(target.moved_back[0].thread, first);
  EXPECT_EQ(target.moved_back[0].how, ResumeKind::kContinue);
}

TEST_F(PastTest, ReadingOtherThreadsDoesNotChooseThem) {
  ask("qSupported:multiprocess+");
  ASSERT_THAT(ask("?"), HasSubstr("thread:p1.1;"));
  // As gdb does when it has connected, and for `info threads`.
  ask("Hgp1.2");
  ask("g");
  ask("Hcp1.0");
  ask("bs");
  ASSERT_EQ(target.moved_back.size(), 1U);
  EXPECT_EQ(target.moved_back[0].thread, first);
  after(first, StopKind::kStep);
  ask("Hgp1.2");
  ask("vCont;c:p1.-1");
  EXPECT_EQ(target.preferred, first);
}

TEST_F(PastTest, AThreadThatTheUserChoseGoesBack) {
  ask("qSupported:multiprocess+");
  ASSERT_THAT(ask("?"), HasSubstr("thread:p1.1;"));
  EXPECT_EQ(ask("Tp1.2"), "OK");
  ask("Hcp1.0");
  ask("bs");
  ASSERT_EQ(target.moved_back.size(), 1U);
  EXPECT_EQ(target.moved_back[0].thread, second);
  after(second, StopKind::kStep);
  EXPECT_EQ(ask("Tp1.7"), "E01");
  ask("vCont;c:p1.-1");
  EXPECT_EQ(target.preferred, second);
}

TEST_F(PastTest, InNonStopTheStopIsANotification) {
  ask("qSupported:multiprocess+");
  ask("QNonStop:1");
  ask("Hcp1.1");
  EXPECT_EQ(ask("bs"), "OK");
  after(first, StopKind::kStep);
  ASSERT_FALSE(sink.notifications.empty());
  EXPECT_THAT(sink.notifications.back(), ::testing::StartsWith("Stop:T05"));
}

TEST_F(PastTest, InNonStopALiveThreadStaysWhereItIs) {
  target.lives = true;
  ask("qSupported:multiprocess+");
  ask("QNonStop:1");
  ask("Hcp1.2");
  EXPECT_THAT(ask("bs"), ::testing::StartsWith("O"));
  EXPECT_TRUE(target.moved_back.empty());
  ASSERT_EQ(sink.notifications.size(), 1U);
  EXPECT_THAT(sink.notifications[0], HasSubstr("replaylog:begin;"));
  EXPECT_THAT(sink.notifications[0], HasSubstr("thread:p1.2;"));
}

TEST_F(PastTest, BothEndsOfTheHistoryHaveTheirNames) {
  ask("qSupported:multiprocess+");
  ask("bc");
  EXPECT_THAT(after(first, StopKind::kHistoryBegin), HasSubstr("replaylog:begin;"));
  ask("vCont;c");
  EXPECT_THAT(after(first, StopKind::kHistoryEnd), HasSubstr("replaylog:end;"));
}

TEST_F(PastTest, AThreadThatIsGoneIsAnError) {
  ask("qSupported:multiprocess+");
  target.all.clear();
  EXPECT_EQ(ask("bs"), "E01");
}

TEST_F(PastTest, TheEndOfAKilledProcessIsTheAnswer) {
  ask("qSupported:multiprocess+");
  target.ended = {first, second};
  EXPECT_EQ(ask("bs"), "(none)");
  EXPECT_EQ(SessionTest::after(
                StopEvent{.thread = first, .kind = StopKind::kProcessSignalled, .signal = SIGKILL}),
            "X09;process:1");
}

TEST_F(PastTest, RegistersThatAreNotKnownHaveNoDigits) {
  ask("qSupported:multiprocess+");
  ask("Hgp1.1");
  const std::string now = ask("g");
  constexpr std::size_t kRip = 16;
  std::vector<bool> only_pc(kRip + 1);
  only_pc[kRip] = true;
  target.known[first] = only_pc;
  const std::string then = ask("g");
  ASSERT_EQ(then.size(), now.size());
  EXPECT_EQ(then.substr(0, kRip * 16), std::string(kRip * 16, 'x'));
  EXPECT_EQ(then.substr(kRip * 16, 16), now.substr(kRip * 16, 16));
  EXPECT_EQ(then.find_first_not_of('x', (kRip + 1) * 16), std::string::npos);
  EXPECT_EQ(ask("p0"), std::string(16, 'x'));
  EXPECT_EQ(ask("p10"), now.substr(kRip * 16, 16));
  // A stop reply omits unknown registers.
  ask("bs");
  EXPECT_THAT(after(first, StopKind::kStep), ::testing::StartsWith("T0510:"));
}

TEST_F(PastTest, MemoryIsWhatTheThreadSaw) {
  ask("qSupported:multiprocess+");
  ask("Hgp1.1");
  EXPECT_EQ(ask("m1000,2"), "0001");
  target.known[first] = {};
  target.past_memory = {0xaa, 0xbb};
  EXPECT_EQ(ask("m1000,2"), "aabb");
  EXPECT_EQ(ask("m1000,3"), "E01");
  // The other thread is at the end of its history.
  ask("Hgp1.2");
  EXPECT_EQ(ask("m1000,2"), "0001");
}

TEST_F(PastTest, RecordBtraceBeginsAtTheEndOnly) {
  ask("qSupported:multiprocess+");
  ask("Hgp1.1");
  target.known[first] = {};
  EXPECT_THAT(ask("Qbtrace:pt"), HasSubstr("E.The program is in its past"));
  target.known.clear();
  EXPECT_EQ(ask("Qbtrace:pt"), "OK");
}

TEST_F(PastTest, AForwardMoveIsTheSelectedThreads) {
  ask("qSupported:multiprocess+");
  ask("Hgp1.2");
  ask("vCont;c");
  EXPECT_EQ(target.preferred, second);
}

class NoPastTest : public SessionTest {};

TEST_F(NoPastTest, TheLivingGoForwardOnly) {
  target.add_process(1);
  EXPECT_THAT(ask("qSupported"), Not(HasSubstr("Reverse")));
  EXPECT_EQ(ask("bs"), "");
  EXPECT_EQ(ask("bc"), "");
}

}  // namespace
}  // namespace backtrail::server
