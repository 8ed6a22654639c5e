// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using tracee::BreakpointKind;

class BreakpointsTest : public SessionTest {
 protected:
  BreakpointsTest() { thread = target.add_process(1); }

  ThreadId thread;
};

TEST_F(BreakpointsTest, InsertsEveryKind) {
  EXPECT_EQ(ask("Z0,401000,1"), "OK");
  EXPECT_EQ(ask("Z1,402000,1"), "OK");
  EXPECT_EQ(ask("Z2,403000,8"), "OK");
  EXPECT_EQ(ask("Z4,404000,4"), "OK");
  ASSERT_EQ(target.breakpoints.size(), 4U);
  EXPECT_EQ(target.breakpoints[0].kind, BreakpointKind::kSoftware);
  EXPECT_EQ(target.breakpoints[1].kind, BreakpointKind::kHardware);
  EXPECT_EQ(target.breakpoints[2].kind, BreakpointKind::kWrite);
  EXPECT_EQ(target.breakpoints[2].address, TraceeAddr{0x403000});
  EXPECT_EQ(target.breakpoints[2].length, 8U);
  EXPECT_EQ(target.breakpoints[3].kind, BreakpointKind::kAccess);
  for (const auto& breakpoint : target.breakpoints) EXPECT_FALSE(breakpoint.condition);
}

TEST_F(BreakpointsTest, Removes) {
  ask("Z0,401000,1");
  EXPECT_EQ(ask("z0,401000,1"), "OK");
  EXPECT_EQ(ask("z0,401000,1"), "E01");
}

TEST_F(BreakpointsTest, ReadWatchpointsDoNotExistHere) {
  EXPECT_EQ(ask("Z3,401000,4"), "");
  EXPECT_EQ(ask("z3,401000,4"), "");
  EXPECT_EQ(ask("Z9,401000,4"), "");
}

TEST_F(BreakpointsTest, TellsWhatWentWrong) {
  target.insert_error = make_error(TraceErrc::kBusy, "debug registers");
  EXPECT_EQ(ask("Z1,401000,1"), "E01");
  target.insert_error = make_error(TraceErrc::kUnsupported, "debug registers");
  EXPECT_EQ(ask("Z1,401000,1"), "");
  target.insert_error = errno_error(ENODEV, "debug registers");
  EXPECT_EQ(ask("Z2,401000,8"), "E01");
  ask("qSupported:error-message+");
  EXPECT_THAT(ask("Z2,401000,8"),
              testing::StartsWith("E.the debug registers of this machine do not trap"));
}

TEST_F(BreakpointsTest, RefusesMalformedPlaces) {
  for (const char* bad :
       {"Z0", "Z0,", "Z0,401000", "Z0,401000,", "Z0,401000,2", "Z0,401000,0", "Z2,401000,0",
        "Z0,401000,1x", "Z0401000,1", "Z0,401000,1;X", "Z0,401000,1;X2,22", "Z0,401000,1;X1,2",
        "Z0,401000,1;Xffffffff,22", "Z0,401000,1;X1,zz", "Z0,401000,1;cmds:", "Z0,401000,1;cmds:1",
        "Z0,401000,1;cmds:1,X2,22"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
  EXPECT_TRUE(target.breakpoints.empty());
}

TEST_F(BreakpointsTest, EvaluatesConditionsInTheStoppedThread) {
  // rax == 5
  ASSERT_EQ(ask("Z0,401000,1;X7,26000022051327"), "OK");
  ASSERT_TRUE(target.breakpoints[0].condition);
  EXPECT_FALSE(target.breakpoints[0].condition(thread));
  target.thread(thread).registers.user[arch::x86::UserReg::kRax] = 5;
  EXPECT_TRUE(target.breakpoints[0].condition(thread));
}

TEST_F(BreakpointsTest, ConditionsReadMemory) {
  // *(char*)0x1001 == 1
  ASSERT_EQ(ask("Z0,401000,1;X8,2310011722011327"), "OK");
  EXPECT_TRUE(target.breakpoints[0].condition(thread));
  target.all.at(1).memory.at(0x1000)[1] = 2;
  EXPECT_FALSE(target.breakpoints[0].condition(thread));
}

TEST_F(BreakpointsTest, OneTrueConditionIsEnough) {
  ASSERT_EQ(ask("Z0,401000,1;X3,220027X3,220127"), "OK");
  EXPECT_TRUE(target.breakpoints[0].condition(thread));
  ASSERT_EQ(ask("Z0,401000,1;X3,220027X3,220027"), "OK");
  EXPECT_FALSE(target.breakpoints[1].condition(thread));
}

TEST_F(BreakpointsTest, AFailingConditionCountsAsTrue) {
  ASSERT_EQ(ask("Z0,401000,1;X1,02"), "OK");
  EXPECT_TRUE(target.breakpoints[0].condition(thread));
}

TEST_F(BreakpointsTest, CommandsRunInsteadOfAStop) {
  // printf("hit\n")
  const std::string printf = "22002200340000056869740a0027";
  ASSERT_EQ(ask("Z0,401000,1;cmds:0,Xe," + printf), "OK");
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(target.breakpoints[0].condition(thread));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "hit\n");
}

TEST_F(BreakpointsTest, CommandsWaitForTheCondition) {
  const std::string printf = "22002200340000056869740a0027";
  ASSERT_EQ(ask("Z0,401000,1;X3,220027;cmds:0,Xe," + printf), "OK");
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(target.breakpoints[0].condition(thread));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(BreakpointsTest, ACommandThatFailsStops) {
  ASSERT_EQ(ask("Z0,401000,1;cmds:0,X1,02"), "OK");
  EXPECT_TRUE(target.breakpoints[0].condition(thread));
}

TEST_F(BreakpointsTest, UnknownOptionsAreSkipped) {
  ASSERT_EQ(ask("Z0,401000,1;future:1,2;X3,220027"), "OK");
  EXPECT_FALSE(target.breakpoints[0].condition(thread));
}

}  // namespace
}  // namespace backtrail::server
