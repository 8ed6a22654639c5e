// SPDX-License-Identifier: Apache-2.0
// Programs with threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "test/gdb/on_program.hpp"

namespace backtrail::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(Threads, AreListedWithNames) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break everyone_started", "continue"});
  const std::string list = gdb.run("info threads");
  EXPECT_EQ(count(list, "\"threads\""), 5);
  EXPECT_THAT(list, ContainsRegex("\\* 1 +Thread [0-9.]+ .*everyone_started"));
  EXPECT_THAT(gdb.run("thread apply all print $_thread"), HasSubstr("= 5"));
}

TEST(Threads, HaveRegistersAndStacksOfTheirOwn) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break everyone_worked", "continue"});
  std::set<std::string> numbers;
  for (int thread = 2; thread <= 5; ++thread) {
    gdb.run("thread " + std::to_string(thread));
    gdb.run("frame function run");
    numbers.insert(gdb.value("number"));
  }
  EXPECT_EQ(numbers, (std::set<std::string>{"0", "1", "2", "3"}));
}

TEST(Threads, BreakpointsHoldInEachOfThem) {
  GdbSession gdb{on("threads")};
  gdb.run("break work_done");
  std::set<std::string> numbers;
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(gdb.run("continue"), HasSubstr("work_done"));
    numbers.insert(gdb.value("number"));
  }
  EXPECT_EQ(numbers, (std::set<std::string>{"0", "1", "2", "3"}));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("1 5 13 25 joined"));
}

TEST(Threads, BreakpointsForOneThreadOnly) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break everyone_started", "continue", "break leaf thread 3", "continue"});
  EXPECT_EQ(gdb.value("$_thread"), "3");
}

TEST(Threads, LockedSchedulerMovesOneThread) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break work_done", "continue", "set scheduler-locking on"});
  const std::string thread = gdb.value("$_thread");
  gdb.run("next");
  EXPECT_EQ(gdb.value("$_thread"), thread);
  gdb.run("set scheduler-locking off");
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(Threads, StepWhileOthersRun) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break work", "continue", "delete"});
  const std::string thread = gdb.value("$_thread");
  for (int i = 0; i < 6; ++i) gdb.run("step");
  EXPECT_EQ(gdb.value("$_thread"), thread);
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("1 5 13 25 joined"));
}

TEST(Threads, ComeAndGo) {
  GdbSession gdb{on("churn", {"25"})};
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("visits 100"));
}

TEST(Threads, BreakpointsHitInEachOfManyShortOnes) {
  GdbSession gdb{on("churn", {"10"})};
  gdb.run("set print thread-events off");
  gdb.run("set $hits = 0");
  gdb.run("break visit\ncommands\nsilent\nset $hits = $hits + 1\ncontinue\nend");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_EQ(gdb.value("$hits"), "40");
}

TEST(Threads, ConditionalBreakpointsUnderChurn) {
  GdbSession gdb{on("churn", {"25"})};
  gdb.run("break between_rounds if round == 20");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("between_rounds (round=20)"));
  EXPECT_EQ(gdb.value("visits"), "84");
  EXPECT_EQ(count(gdb.run("info threads"), "Thread"), 1);
}

TEST(Threads, OwnVariables) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break everyone_worked", "continue"});
  EXPECT_EQ(gdb.value("own_number"), "-1");
  std::set<std::string> numbers;
  for (int thread = 2; thread <= 5; ++thread) {
    gdb.run("thread " + std::to_string(thread));
    numbers.insert(gdb.value("own_number"));
  }
  EXPECT_EQ(numbers, (std::set<std::string>{"0", "1", "2", "3"}));
}

TEST(Threads, DetachLeavesAllOfThemRunning) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break work", "continue"});
  EXPECT_THAT(gdb.run("detach"), HasSubstr("Detaching"));
  EXPECT_TRUE(gdb.wait_for_server("1 5 13 25 joined"));
}

TEST(Threads, KillEndsAllOfThem) {
  GdbSession gdb{on("spin", {"8"})};
  gdb.start("continue");
  ASSERT_TRUE(gdb.wait_for_server("ready"));
  gdb.interrupt();
  gdb.finish();
  EXPECT_THAT(gdb.run("kill"), HasSubstr("killed"));
  EXPECT_TRUE(gdb.wait_for_server_end());
}

}  // namespace
}  // namespace backtrail::test
