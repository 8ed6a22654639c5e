// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using tracee::ResumeKind;
using tracee::StopEvent;
using tracee::StopKind;

class ResumeTest : public SessionTest {
 protected:
  ResumeTest() {
    first = target.add_process(1);
    second = target.add_thread(1, 2);
    other = target.add_process(3);
    offer_all();
  }

  static StopEvent stop(ThreadId thread, StopKind kind, int signal = 0) {
    StopEvent event;
    event.thread = thread;
    event.kind = kind;
    event.signal = signal;
    return event;
  }

  ThreadId first;
  ThreadId second;
  ThreadId other;
};

TEST_F(ResumeTest, ListsTheActions) {
  EXPECT_EQ(ask("vCont?"), "vCont;c;C;t;s;S;r");
}

TEST_F(ResumeTest, ContinuesOneProcess) {
  EXPECT_EQ(ask("vCont;c:p1.-1"), "(none)");
  ASSERT_EQ(target.resumes.size(), 1U);
  ASSERT_EQ(target.resumes[0].size(), 2U);
  EXPECT_EQ(target.resumes[0][0].thread, first);
  EXPECT_EQ(target.resumes[0][1].thread, second);
  EXPECT_EQ(target.resumes[0][1].action.kind, ResumeKind::kContinue);
}

TEST_F(ResumeTest, StepsOneThreadAndContinuesAllOthers) {
  EXPECT_EQ(ask("vCont;s:p1.2;c"), "(none)");
  ASSERT_EQ(target.resumes[0].size(), 3U);
  EXPECT_EQ(target.resumes[0][0].action.kind, ResumeKind::kContinue);
  EXPECT_EQ(target.resumes[0][1].action.kind, ResumeKind::kStep);
  EXPECT_EQ(target.resumes[0][2].thread, other);
}

TEST_F(ResumeTest, AnswersWithTheStop) {
  ask("vCont;c");
  EXPECT_EQ(after(stop(second, StopKind::kSignal, SIGUSR1)),
            "T1e06:0000000000000000;07:0000000000000000;10:0010000000000000;thread:p1.2;");
  // In all-stop the event's thread becomes the selected one.
  EXPECT_EQ(ask("qC"), "QCp1.2");
}

TEST_F(ResumeTest, NamesTheCore) {
  target.thread(first).core = 11;
  ask("vCont;c");
  EXPECT_THAT(after(stop(first, StopKind::kStep)), ::testing::EndsWith(";thread:p1.1;core:b;"));
}

TEST_F(ResumeTest, SaysWhyItStopped) {
  const auto reply_to = [this](StopEvent event) {
    ask("vCont;c");
    return after(std::move(event));
  };
  EXPECT_THAT(reply_to(stop(first, StopKind::kStep)), StartsWith("T0506:"));
  EXPECT_THAT(reply_to(stop(first, StopKind::kSoftwareBreakpoint)), StartsWith("T05swbreak:;06:"));
  EXPECT_THAT(reply_to(stop(first, StopKind::kHardwareBreakpoint)), StartsWith("T05hwbreak:;06:"));
  StopEvent event = stop(first, StopKind::kWatchpoint);
  event.address = TraceeAddr{0x404010};
  EXPECT_THAT(reply_to(event), StartsWith("T05watch:0000000000404010;06:"));
  event = stop(first, StopKind::kFork);
  event.child = {0x77, 0x77};
  EXPECT_THAT(reply_to(event), StartsWith("T05fork:p77.77;06:"));
  event.kind = StopKind::kVfork;
  EXPECT_THAT(reply_to(event), StartsWith("T05vfork:p77.77;06:"));
  EXPECT_THAT(reply_to(stop(first, StopKind::kVforkDone)), StartsWith("T05vforkdone:;06:"));
  event = stop(first, StopKind::kExec);
  event.exec_path = "/bin/true";
  EXPECT_THAT(reply_to(event), StartsWith("T05exec:" + hex("/bin/true") + ";06:"));
  event = stop(first, StopKind::kSyscallEntry);
  event.syscall = 0x10;
  EXPECT_THAT(reply_to(event), StartsWith("T05syscall_entry:10;06:"));
  event.kind = StopKind::kSyscallReturn;
  EXPECT_THAT(reply_to(event), StartsWith("T05syscall_return:10;06:"));
  event.syscall = -1;
  EXPECT_THAT(reply_to(event), StartsWith("T05syscall_return:ffffffff;06:"));
  EXPECT_THAT(reply_to(stop(first, StopKind::kThreadCreated)), StartsWith("T05create:;06:"));
  event = stop(first, StopKind::kThreadExited);
  event.exit_code = 7;
  EXPECT_EQ(reply_to(event), "w07;p1.1");
  EXPECT_THAT(reply_to(stop(first, StopKind::kStopped)), StartsWith("T0006:"));
  EXPECT_EQ(reply_to(stop(first, StopKind::kNoResumed)), "N");
}

TEST_F(ResumeTest, SaysHowAProcessEnded) {
  StopEvent event = stop(first, StopKind::kProcessExited);
  event.exit_code = 3;
  ask("vCont;c");
  EXPECT_EQ(after(event), "W03;process:1");
  ask("vCont;c");
  EXPECT_EQ(after(stop(other, StopKind::kProcessSignalled, SIGSEGV)), "X0b;process:3");
  EXPECT_EQ(ask("Hgp0.0"), "E01");
  EXPECT_EQ(session.fate(), SessionFate::kServe);
}

TEST_F(ResumeTest, TellsPeopleHowAProcessEnded) {
  state.launch.stdio_is_protocol = false;
  StopEvent event = stop(first, StopKind::kProcessExited);
  event.exit_code = 3;
  ask("vCont;c");
  ::testing::internal::CaptureStderr();
  after(event);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "\nChild exited with status 3\n");
  ask("vCont;c");
  ::testing::internal::CaptureStderr();
  after(stop(other, StopKind::kProcessSignalled, SIGUSR1));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "\nChild terminated with signal = 0xa (SIGUSR1)\n");
}

TEST_F(ResumeTest, SendsNothingTheClientDidNotOffer) {
  ask("qSupported:");
  ask("vCont;c");
  EXPECT_THAT(after(stop(second, StopKind::kSoftwareBreakpoint)), StartsWith("T0506:"));
  ask("vCont;c");
  EXPECT_THAT(after(stop(second, StopKind::kHardwareBreakpoint)), HasSubstr(";thread:2;"));
  ask("vCont;c");
  EXPECT_EQ(after(stop(second, StopKind::kNoResumed)), "E.No unwaited-for children left.");
  ask("vCont;c");
  EXPECT_EQ(after(stop(first, StopKind::kProcessExited)), "W00");
}

TEST_F(ResumeTest, OneResumeIsAnsweredByOneEvent) {
  ask("vCont;c");
  target.post(stop(first, StopKind::kStep));
  target.post(stop(second, StopKind::kSignal, SIGINT));
  sink.packets.clear();
  session.on_target_events();
  session.on_target_events();
  ASSERT_EQ(sink.packets.size(), 1U);
  EXPECT_THAT(sink.packets[0], HasSubstr("thread:p1.1;"));
  // The second event answers the next resume.
  EXPECT_THAT(ask("vCont;c"), HasSubstr("thread:p1.2;"));
}

TEST_F(ResumeTest, SendsNoStopThatNobodyAskedFor) {
  EXPECT_EQ(after(stop(first, StopKind::kStep)), "(none)");
  EXPECT_EQ(ask("qC"), "QCp1.1");
  EXPECT_THAT(ask("vCont;c"), StartsWith("T05"));
}

TEST_F(ResumeTest, ResumesThreadsWhoseEndsTheClientDoesNotKnow) {
  const ThreadId ended{1, 9};
  target.untold_ends = {ended};
  EXPECT_EQ(ask("vCont;s:p1.1"), "(none)");
  ASSERT_EQ(target.resumes.back().size(), 1U);
  EXPECT_EQ(target.resumes.back()[0].thread, first);
  after(stop(first, StopKind::kStep));
  EXPECT_EQ(ask("vCont;s:p1.9"), "(none)");
  ASSERT_EQ(target.resumes.back().size(), 1U);
  EXPECT_EQ(target.resumes.back()[0].thread, ended);
  after(stop(ended, StopKind::kThreadExited));
  ask("qfThreadInfo");
  EXPECT_EQ(ask("vCont;s:p1.9"), "E01") << "the client knows that it is gone";
}

TEST_F(ResumeTest, NamesTheNewThread) {
  ask("vCont;c");
  StopEvent clone = stop(first, StopKind::kThreadCloned);
  clone.child = second;
  EXPECT_THAT(after(clone), StartsWith("T05clone:p1.2;"));
}

TEST_F(ResumeTest, RefusesWhatFitsNoThread) {
  for (const char* bad :
       {"vCont;c:p9.9", "vCont;s:p1.9", "vCont;q", "vCont;", "vCont;t", "vCont;c:p1.1;q"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
  EXPECT_TRUE(target.resumes.empty());
}

TEST_F(ResumeTest, PacketsDuringARunWaitForTheStop) {
  ask("vCont;c");
  EXPECT_EQ(ask("qC"), "(none)");
  target.post(stop(second, StopKind::kStep));
  session.on_target_events();
  ASSERT_EQ(sink.packets.size(), 2U);
  EXPECT_THAT(sink.packets[0], StartsWith("T05"));
  EXPECT_EQ(sink.packets[1], "QCp1.2");
}

TEST_F(ResumeTest, AFloodDuringARunEndsTheConnection) {
  ask("vCont;c");
  for (int i = 0; i < 1000; ++i) session.on_packet("qC");
  EXPECT_EQ(session.fate(), SessionFate::kDisconnect);
}

TEST_F(ResumeTest, InterruptsWhatRunsNowOrNext) {
  session.on_interrupt();
  EXPECT_EQ(target.interrupts, 1);
  ask("vCont;c");
  session.on_interrupt();
  EXPECT_EQ(target.interrupts, 2);
  EXPECT_THAT(after(stop(first, StopKind::kSignal, SIGINT)), StartsWith("T02"));
}

TEST_F(ResumeTest, UnderstandsTheOldPackets) {
  EXPECT_EQ(ask("s"), "(none)");
  ASSERT_EQ(target.resumes.back().size(), 3U);
  EXPECT_EQ(target.resumes.back()[0].action.kind, ResumeKind::kStep);
  EXPECT_EQ(target.resumes.back()[1].action.kind, ResumeKind::kContinue);
  after(stop(first, StopKind::kStep));
  ask("Hcp1.2");
  EXPECT_EQ(ask("S02"), "(none)");
  ASSERT_EQ(target.resumes.back().size(), 1U);
  EXPECT_EQ(target.resumes.back()[0].thread, second);
  EXPECT_EQ(target.resumes.back()[0].action.signal, SIGINT);
  after(stop(second, StopKind::kStep));
  EXPECT_EQ(ask("C1e"), "(none)");
  EXPECT_EQ(target.resumes.back()[0].action.signal, SIGUSR1);
  after(stop(second, StopKind::kStep));
  EXPECT_EQ(ask("c"), "(none)");
  after(stop(second, StopKind::kStep));
  EXPECT_EQ(ask("C"), "E01");
  EXPECT_EQ(ask("Czz"), "E01");
  EXPECT_EQ(ask("c1234"), "");
}

TEST_F(ResumeTest, DisablingTMakesPlainStops) {
  state.disabled_packets = {"T"};
  ask("vCont;c");
  EXPECT_EQ(after(stop(first, StopKind::kSignal, SIGINT)), "S02");
}

TEST_F(ResumeTest, DisablingThreadsLeavesThemOut) {
  state.disabled_packets = {"Tthread"};
  ask("vCont;c");
  EXPECT_EQ(after(stop(first, StopKind::kSignal, SIGINT)),
            "T0206:0000000000000000;07:0000000000000000;10:0010000000000000;");
}

}  // namespace
}  // namespace backtrail::server
