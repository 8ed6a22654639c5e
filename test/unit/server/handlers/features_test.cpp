// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FeaturesTest : public SessionTest {};

TEST_F(FeaturesTest, OffersWhatTheTargetCanDo) {
  const std::string offered = ";" + ask("qSupported:multiprocess+;swbreak+") + ";";
  for (const char* feature : {";PacketSize=1ffff;",
                              ";QPassSignals+;",
                              ";QCatchSyscalls+;",
                              ";qXfer:auxv:read+;",
                              ";qXfer:siginfo:write+;",
                              ";augmented-libraries-svr4-read+;",
                              ";multiprocess+;",
                              ";fork-events+;",
                              ";exec-events+;",
                              ";QNonStop+;",
                              ";ConditionalBreakpoints+;",
                              ";BreakpointCommands+;",
                              ";Qbtrace:bts+;",
                              ";Qbtrace:pt+;",
                              ";Qbtrace:off+;",
                              ";Qbtrace-conf:bts:size+;",
                              ";Qbtrace-conf:pt:size+;",
                              ";qXfer:btrace:read+;",
                              ";qXfer:btrace-conf:read+;",
                              ";swbreak+;",
                              ";hwbreak+;",
                              ";vContSupported+;",
                              ";QThreadEvents+;",
                              ";no-resumed+;",
                              ";binary-upload+;",
                              ";QStartNoAckMode+;"}) {
    EXPECT_THAT(offered, HasSubstr(feature));
  }
}

TEST_F(FeaturesTest, OffersThreadOptionsToClientsThatKnowThem) {
  EXPECT_THAT(ask("qSupported:QThreadOptions+") + ";", HasSubstr(";QThreadOptions=3;"));
  EXPECT_THAT(ask("qSupported:QThreadEvents+"), Not(HasSubstr("QThreadOptions")));
}

TEST_F(FeaturesTest, NeverOffersTracepoints) {
  const std::string offered = ask("qSupported:qRelocInsn+");
  for (const char* feature : {"Tracepoints", "QTBuffer", "tracenz", "statictrace", "QAgent"}) {
    EXPECT_THAT(offered, Not(HasSubstr(feature)));
  }
  EXPECT_EQ(ask("qTStatus"), "");
}

TEST_F(FeaturesTest, EveryOfferedReadIsServed) {
  target.add_process(1);
  target.thread({1, 1}).trace = tracee::TraceConfig{};
  const std::string offered = ask("qSupported");
  // gdb stops using an offered object that is answered with ''.
  for (const char* object : {"auxv", "exec-file", "features", "libraries-svr4", "osdata", "siginfo",
                             "threads", "btrace", "btrace-conf"}) {
    EXPECT_THAT(offered, HasSubstr(std::string{"qXfer:"} + object + ":read+"));
    EXPECT_NE(ask(std::string{"qXfer:"} + object + ":read:x:0,10"), "") << object;
  }
}

TEST_F(FeaturesTest, RemembersWhichEventsTheClientUnderstands) {
  ask("qSupported:fork-events+;exec-events+");
  ASSERT_TRUE(target.reported_events);
  EXPECT_TRUE(target.reported_events->fork);
  EXPECT_FALSE(target.reported_events->vfork);
  EXPECT_TRUE(target.reported_events->exec);
}

TEST_F(FeaturesTest, UnknownPacketsGetTheEmptyReply) {
  for (const char* packet :
       {"vMustReplyEmpty", "vMustReplyEmptyToo", "qOffsets", "qP1", "qL1", "qThreadExtraInfo,1",
        "qGetTIBAddr:1", "QAllow:x", "QAgent:1", "i", "I", "bc", "bs", "vFlashErase:1",
        "qMemTags:0,1:1", "zz", "", "\x01"}) {
    EXPECT_EQ(ask(packet), "") << packet;
  }
}

TEST_F(FeaturesTest, StopsAcknowledging) {
  EXPECT_FALSE(session.no_ack());
  EXPECT_EQ(ask("QStartNoAckMode"), "OK");
  EXPECT_TRUE(session.no_ack());
}

TEST_F(FeaturesTest, EntersTheExtendedProtocol) {
  EXPECT_EQ(ask("!"), "OK");
  EXPECT_TRUE(state.extended);
}

class LimitedFeaturesTest : public SessionTest {
 protected:
  LimitedFeaturesTest()
      : SessionTest({.process_control = false,
                     .run_control = false,
                     .breakpoint_control = false,
                     .branch_tracing = false}) {}
};

TEST_F(LimitedFeaturesTest, AbsentAbilitiesAreNotOffered) {
  const std::string offered = ask("qSupported");
  for (const char* feature : {"QPassSignals", "fork-events", "QNonStop", "QThreadEvents", "Qbtrace",
                              "btrace", "ConditionalBreakpoints", "swbreak", "QEnvironment",
                              "vContSupported", "QDisableRandomization"}) {
    EXPECT_THAT(offered, Not(HasSubstr(feature)));
  }
}

TEST_F(LimitedFeaturesTest, PacketsOfAbsentAbilitiesAreUnknown) {
  target.add_process(1);
  for (const char* packet :
       {"vCont?", "Z0,1000,1", "z0,1000,1", "Qbtrace:bts", "Qbtrace-conf:bts:size=1000",
        "qXfer:btrace:read:all:0,10", "vRun;", "vAttach;1", "vKill;1", "QPassSignals:1",
        "QCatchSyscalls:1", "QThreadEvents:1"}) {
    EXPECT_EQ(ask(packet), "") << packet;
  }
  EXPECT_EQ(ask("vCont;c"), "E01");
  EXPECT_EQ(ask("QNonStop:0"), "OK");
  EXPECT_EQ(ask("QNonStop:1"), "E01");
}

TEST_F(LimitedFeaturesTest, StandingStillIsReportable) {
  target.add_process(1);
  EXPECT_THAT(ask("?"), ::testing::StartsWith("T05"));
  EXPECT_EQ(ask("D"), "OK");
  EXPECT_EQ(session.fate(), SessionFate::kExit);
}

}  // namespace
}  // namespace backtrail::server
