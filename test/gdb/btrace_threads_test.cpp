// SPDX-License-Identifier: Apache-2.0
// `record btrace` with several threads, processes and connections.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "test/gdb/on_program.hpp"
#include "test/gdb/trace_oracle.hpp"

namespace backtrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// Returns how often the whole history of the selected thread enters `leaf`.
int leaf_calls(GdbSession& gdb) {
  const RecordedCounts counts = recorded_counts(gdb);
  return count(gdb.run(fmt::format("record function-call-history 1,{}", counts.functions)),
               "\tleaf\n");
}

/// Returns, for each thread that entered `leaf`, how often, from the contents of a process's store.
std::multiset<int> calls_of(const std::string& leaf, const std::string& drained) {
  std::map<std::string, int> calls;
  const std::regex call{fmt::format("branch  0x[0-9a-f]+ -> {}, thread ([0-9]+)", leaf)};
  for (std::sregex_iterator at{drained.begin(), drained.end(), call}, end; at != end; ++at) {
    ++calls[(*at)[1]];
  }
  std::multiset<int> counts;
  for (const auto& [thread, number] : calls) counts.insert(number);
  return counts;
}

class BtraceThreads : public ::testing::TestWithParam<Recording> {
 protected:
  static std::string record() { return GetParam().command(); }
  static GdbOptions recorded(std::string_view name,
                             const std::vector<std::string>& arguments = {}) {
    return by(GetParam().source, on(name, arguments));
  }
};

INSTANTIATE_TEST_SUITE_P(Gdb, BtraceThreads, recordings(),
                         [](const auto& test) { return std::string{test.param.name}; });

TEST_P(BtraceThreads, EachHasAHistoryOfItsOwn) {
  GdbSession gdb{recorded("threads")};
  gdb.run_all({"break everyone_started", "continue"});
  ASSERT_THAT(gdb.run(record()), IsEmpty());
  gdb.run_all({"break everyone_worked", "continue"});
  std::multiset<int> calls;
  for (int thread = 2; thread <= 5; ++thread) {
    gdb.run(fmt::format("thread {}", thread));
    gdb.run("frame function run");
    const int number = std::stoi(gdb.value("number"));
    EXPECT_EQ(recorded_counts(gdb).gaps, 0U);
    EXPECT_EQ(leaf_calls(gdb), number + 1) << "thread " << thread;
    calls.insert(number);
  }
  EXPECT_EQ(calls, (std::multiset<int>{0, 1, 2, 3}));
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("1 5 13 25 joined"));
}

/// gdb enables recording when it learns of a thread, at a stop.
TEST_P(BtraceThreads, TheHistoryOfANewThreadBeginsWithItsBirth) {
  GdbSession gdb{recorded("threads")};
  gdb.run_all({"break main", "continue"});
  ASSERT_THAT(gdb.run(record()), IsEmpty());
  gdb.run_all({"break everyone_worked", "continue"});
  int total = 0;
  for (int thread = 2; thread <= 5; ++thread) {
    gdb.run(fmt::format("thread {}", thread));
    const RecordedCounts counts = recorded_counts(gdb);
    EXPECT_EQ(counts.gaps, 0U);
    const std::string calls =
        gdb.run(fmt::format("record function-call-history 1,{}", counts.functions));
    EXPECT_THAT(calls, HasSubstr("\trun\n")) << "thread " << thread;
    EXPECT_THAT(calls, Not(StartsWith("1\trun\n"))) << "what calls it has no part in it";
    EXPECT_EQ(count(calls, "\twork\n"), 1 + leaf_calls(gdb)) << calls;
    total += leaf_calls(gdb);
    gdb.run("break run");
    EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("run (argument="));
    gdb.run_all({"delete", "record goto end"});
  }
  EXPECT_EQ(total, 1 + 2 + 3 + 4);
  ASSERT_THAT(gdb.run("record stop"), HasSubstr("stopped"));
  ASSERT_THAT(gdb.run(record()), IsEmpty());
  EXPECT_LT(recorded_counts(gdb).instructions, 10U) << "a new one";
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST_P(BtraceThreads, NewThreadsAreRecordedToo) {
  GdbSession gdb{recorded("threads")};
  gdb.run_all({"break main", "continue"});
  ASSERT_THAT(gdb.run(record()), IsEmpty());
  gdb.run_all({"break everyone_started", "continue", "break everyone_worked", "continue"});
  int total = 0;
  for (int thread = 2; thread <= 5; ++thread) {
    gdb.run(fmt::format("thread {}", thread));
    const RecordedCounts counts = recorded_counts(gdb);
    EXPECT_EQ(counts.gaps, 0U);
    EXPECT_LT(counts.instructions, 10000U) << "thread " << thread;
    total += leaf_calls(gdb);
    gdb.run_all({"reverse-stepi", "record goto end"});
  }
  EXPECT_EQ(total, 1 + 2 + 3 + 4);
  ASSERT_THAT(gdb.run("record stop"), HasSubstr("stopped"));
  ASSERT_THAT(gdb.run(record()), IsEmpty());
  gdb.run("stepi");
  EXPECT_LT(recorded_counts(gdb).instructions, 10U);
}

TEST_P(BtraceThreads, OneGoesBackWhileOthersStay) {
  GdbSession gdb{recorded("threads")};
  gdb.run_all({"break everyone_started", "continue"});
  ASSERT_THAT(gdb.run(record()), IsEmpty());
  gdb.run_all({"break work_done if number == 3", "continue"});
  EXPECT_THAT(gdb.run("reverse-finish"), HasSubstr("run"));
  gdb.run("tbreak work");
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("work ("));
  gdb.run("record goto end");
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST_P(BtraceThreads, ComingAndGoingIsNoTrouble) {
  GdbSession gdb{recorded("churn", {"5"})};
  gdb.run_all({"break main", "continue"});
  ASSERT_THAT(gdb.run(record()), IsEmpty());
  gdb.run("break between_rounds");
  for (int i = 0; i < 5; ++i) EXPECT_THAT(gdb.run("continue"), HasSubstr("between_rounds"));
  EXPECT_GT(recorded_counts(gdb).instructions, 100U);
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("visits 20"));
}

TEST(BtraceProcesses, GoesOnAcrossExec) {
  GdbSession gdb{on("forks", {"exec", inferior("calls")})};
  gdb.run_all(
      {"break before_exec", "continue", "record btrace bts", "break touch_global", "continue"});
  EXPECT_GT(recorded_counts(gdb).instructions, 100U);
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(BtraceProcesses, HaveAStoreOfAllThreads) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break main", "continue"});
  ASSERT_THAT(gdb.run("record btrace"), IsEmpty());
  ASSERT_THAT(gdb.run("monitor bts process config size=24000000"), HasSubstr("0 records"));
  EXPECT_THAT(gdb.run("monitor bts process config size=2400 level=both"),
              HasSubstr("Operation not supported"));
  // Threads created later belong to the process's store.
  gdb.run_all({"break everyone_started", "continue", "break everyone_worked", "continue"});
  // The store of one thread is separate.
  EXPECT_THAT(gdb.run("monitor bts size"), HasSubstr("No such device or address"));
  const std::string leaf = fmt::format("{:#x}", std::stoull(gdb.value("(long)&leaf")));
  const std::string drained = gdb.run("monitor bts process drain");
  EXPECT_EQ(calls_of(leaf, drained), (std::multiset<int>{1, 2, 3, 4}));
  EXPECT_THAT(gdb.run("monitor bts process size"), HasSubstr("0 records"));
  gdb.run("delete");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST_P(BtraceThreads, AStoreAlsoHasThoseThatEndBeforeAnyStop) {
  GdbSession gdb{recorded("threads")};
  gdb.run_all({"break main", "continue"});
  ASSERT_THAT(gdb.run(record()), IsEmpty());
  ASSERT_THAT(gdb.run("monitor bts process config size=24000000"), HasSubstr("0 records"));
  const std::string leaf = fmt::format("{:#x}", std::stoull(gdb.value("(long)&leaf")));
  gdb.run_all({"break exit", "continue"});
  EXPECT_EQ(calls_of(leaf, gdb.run("monitor bts process drain")), (std::multiset<int>{1, 2, 3, 4}));
}

TEST(BtraceStores, KeepTheFirstRecordsOfManyMoreThanGdbsBufferHolds) {
  GdbSession gdb{by("cache", on("busy"))};
  gdb.run_all({"break main", "continue"});
  ASSERT_THAT(gdb.run("record btrace bts"), IsEmpty());
  ASSERT_THAT(gdb.run("monitor bts config size=2400 overflow=signal"), HasSubstr("0 records"));
  gdb.run_all({"delete", "break done", "continue"});
  EXPECT_THAT(gdb.run("monitor bts status"), HasSubstr("100 records"));
  const std::string drained = gdb.run("monitor bts drain");
  EXPECT_EQ(count(drained, "branch"), 100);
  EXPECT_EQ(count(drained, "gap"), 0);
}

TEST(BtraceProcesses, FollowsTheChildWhenAsked) {
  GdbSession gdb{on("forks")};
  gdb.run_all({"set follow-fork-mode child", "break in_child", "continue"});
  EXPECT_THAT(gdb.run("record btrace"), IsEmpty());
  gdb.run("next");
  EXPECT_GT(recorded_counts(gdb).instructions, 0U);
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 05"));
}

TEST(BtraceConnections, RecordingSurvivesADisconnect) {
  GdbOptions options = over(Wire::kTcp, on("calls"));
  options.connect = false;
  GdbSession gdb{std::move(options)};
  const std::string connect = gdb.connect_command();
  gdb.run_all({connect, "break touch_global", "continue", "record btrace bts", "break moved",
               "continue", "disconnect"});
  EXPECT_THAT(gdb.run(connect), HasSubstr("Target is recording using Branch Trace Store."));
  EXPECT_GT(recorded_counts(gdb).instructions, 5U);
  EXPECT_THAT(gdb.run("reverse-finish"), HasSubstr("main"));
}

TEST(BtraceConnections, AttachedProcessesAreRecorded) {
  Subprocess program{{.arguments = {inferior("spin"), "1"},
                      .environment = test_environment(),
                      .working_directory = "/"}};
  ASSERT_TRUE(program.output().find("ready", 0, deadline_in(std::chrono::seconds{20})));
  GdbOptions options = extended({});
  options.symbols = inferior("spin");
  GdbSession gdb{std::move(options)};
  gdb.run("attach " + std::to_string(program.pid()));
  EXPECT_THAT(gdb.run("record btrace"), IsEmpty());
  gdb.run_all({"tbreak usleep", "continue"});
  EXPECT_GT(recorded_counts(gdb).instructions, 0U);
  gdb.run_all({"record stop", "set var go_on = 1"});
  EXPECT_THAT(gdb.run("detach"), HasSubstr("Detaching"));
  const auto status = program.wait(deadline_in(std::chrono::seconds{20}));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 3);
}

}  // namespace
}  // namespace backtrail::test
