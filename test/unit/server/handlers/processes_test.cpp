// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class ProcessesTest : public SessionTest {
 protected:
  ProcessesTest() { offer_all(); }
};

TEST_F(ProcessesTest, Attaches) {
  EXPECT_THAT(ask("vAttach;2a"), StartsWith("T0506:"));
  EXPECT_EQ(ask("qC"), "QCp2a.2a");
  EXPECT_EQ(ask("qAttached:2a"), "1");
}

TEST_F(ProcessesTest, AttachFailsByNumberOrByText) {
  target.attach_error = errno_error(ESRCH, "attach");
  EXPECT_EQ(ask("vAttach;2a"), "E01");
  ask("qSupported:multiprocess+;error-message+");
  EXPECT_THAT(ask("vAttach;2a"), StartsWith("E.attach: No such process"));
}

TEST_F(ProcessesTest, ASecondProcessNeedsTheExtendedProtocol) {
  target.add_process(1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ask("vAttach;2a"), "E01");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "Already debugging a process\n");
  ask("!");
  EXPECT_THAT(ask("vAttach;2a"), StartsWith("T05"));
}

TEST_F(ProcessesTest, RefusesMalformedIds) {
  for (const char* bad :
       {"vAttach;", "vAttach;0", "vAttach;-1", "vAttach;zz", "vAttach;ffffffff", "vAttach;1x",
        "vKill;", "vKill;0", "vKill;9", "D;", "D;9", "D;zz", "Dx"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(ProcessesTest, DetachingTheLastProcessEndsThePlainServer) {
  target.add_process(1);
  EXPECT_EQ(ask("D;1"), "OK");
  EXPECT_THAT(target.detached, ElementsAre(1));
  EXPECT_EQ(session.fate(), SessionFate::kExit);
  EXPECT_EQ(state.detached_child, 1);
}

TEST_F(ProcessesTest, AnAttachedProcessIsNotWaitedFor) {
  target.add_process(1);
  target.all.at(1).attached = true;
  EXPECT_EQ(ask("D;1"), "OK");
  EXPECT_EQ(session.fate(), SessionFate::kExit);
  EXPECT_EQ(state.detached_child, std::nullopt);
}

TEST_F(ProcessesTest, DetachingOneOfSeveralGoesOn) {
  target.add_process(1);
  target.add_process(2);
  EXPECT_EQ(ask("D;1"), "OK");
  EXPECT_EQ(session.fate(), SessionFate::kServe);
  EXPECT_EQ(ask("Hgp0.0"), "OK");
  EXPECT_EQ(ask("qC"), "QCp2.2");
}

TEST_F(ProcessesTest, TheExtendedServerStays) {
  ask("!");
  target.add_process(1);
  EXPECT_EQ(ask("D;1"), "OK");
  EXPECT_EQ(session.fate(), SessionFate::kServe);
}

TEST_F(ProcessesTest, DetachesTheSelectedProcessWithoutMultiprocess) {
  ask("qSupported:");
  target.add_process(1);
  EXPECT_EQ(ask("D"), "OK");
  EXPECT_THAT(target.detached, ElementsAre(1));
}

TEST_F(ProcessesTest, KillsOne) {
  target.add_process(1);
  EXPECT_EQ(ask("vKill;1"), "OK");
  EXPECT_THAT(target.killed, ElementsAre(1));
  EXPECT_EQ(session.fate(), SessionFate::kServe);
  EXPECT_EQ(ask("vKill;1"), "E01");
}

TEST_F(ProcessesTest, KillsEverythingAndEnds) {
  target.add_process(1);
  target.add_process(2);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ask("k"), "(none)");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "Killing all inferiors\n");
  EXPECT_THAT(target.killed, ElementsAre(1, 2));
  EXPECT_EQ(session.fate(), SessionFate::kExit);
}

TEST_F(ProcessesTest, KillsEvenWhileRunning) {
  target.add_process(1);
  ask("vCont;c");
  EXPECT_EQ(ask("k"), "(none)");
  EXPECT_THAT(target.killed, ElementsAre(1));
}

TEST_F(ProcessesTest, KillingInTheExtendedProtocolStays) {
  ask("!");
  target.add_process(1);
  EXPECT_EQ(ask("k"), "(none)");
  EXPECT_EQ(session.fate(), SessionFate::kServe);
  EXPECT_EQ(ask("?"), "W00");
}

TEST_F(ProcessesTest, NothingToKillIsNoReasonToEnd) {
  EXPECT_EQ(ask("k"), "(none)");
  EXPECT_EQ(session.fate(), SessionFate::kServe);
}

TEST_F(ProcessesTest, NothingIsServedAfterTheEnd) {
  target.add_process(1);
  ask("D;1");
  EXPECT_EQ(ask("qC"), "(none)");
}

}  // namespace
}  // namespace backtrail::server
