// SPDX-License-Identifier: Apache-2.0
// `serve --from-start`: `record btrace` shows what ran before the user typed it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"
#include "test/gdb/trace_oracle.hpp"

namespace backtrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

GdbOptions from_start(GdbOptions options) {
  options.server_options.emplace_back("--from-start");
  return options;
}

std::string calls(GdbSession& gdb) {
  const RecordedCounts counts = recorded_counts(gdb);
  EXPECT_EQ(counts.gaps, 0U);
  return gdb.run(fmt::format("record function-call-history 1,{}", counts.functions));
}

class BtraceFromStart : public ::testing::TestWithParam<Recording> {};

INSTANTIATE_TEST_SUITE_P(Gdb, BtraceFromStart, recordings(),
                         [](const auto& test) { return std::string{test.param.name}; });

TEST_P(BtraceFromStart, EveryThreadHasWhatItDidBefore) {
  GdbSession gdb{by(GetParam().source, from_start(on("threads")))};
  const std::string record = GetParam().command();
  gdb.run_all({"break everyone_worked", "continue"});
  EXPECT_THAT(gdb.run("info record"), HasSubstr("No record"));
  ASSERT_THAT(gdb.run(record), IsEmpty());
  EXPECT_THAT(calls(gdb), HasSubstr("\tmain\n"));
  int leaves = 0;
  for (int thread = 2; thread <= 5; ++thread) {
    gdb.run(fmt::format("thread {}", thread));
    leaves += count(calls(gdb), "\tleaf\n");
  }
  EXPECT_EQ(leaves, 1 + 2 + 3 + 4);
  gdb.run("break work");
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("work (number="));
  gdb.run_all({"delete", "record goto end", "record stop"});
  ASSERT_THAT(gdb.run(record), IsEmpty());
  EXPECT_LT(recorded_counts(gdb).instructions, 10U) << "a new one";
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(BtraceFromTheStart, HasTheWayIntoACrash) {
  GdbSession gdb{from_start(on("crashes", {"null"}))};
  ASSERT_THAT(gdb.run("continue"), HasSubstr("SIGSEGV"));
  ASSERT_THAT(gdb.run("record btrace"), IsEmpty());
  EXPECT_THAT(calls(gdb), HasSubstr("\tfault\n"));
  EXPECT_THAT(gdb.run("reverse-finish"), HasSubstr("main"));
}

TEST(BtraceFromTheStart, GoesWithTheChildThatIsFollowed) {
  GdbSession gdb{from_start(on("forks"))};
  gdb.run_all({"set follow-fork-mode child", "break in_child", "continue"});
  ASSERT_THAT(gdb.run("record btrace"), IsEmpty());
  EXPECT_GT(recorded_counts(gdb).instructions, 10U);
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 05"));
}

TEST(BtraceFromTheStart, WhichIsTheAttach) {
  Subprocess program{{.arguments = {inferior("spin"), "1"},
                      .environment = test_environment(),
                      .working_directory = "/"}};
  ASSERT_TRUE(program.output().find("ready", 0, deadline_in(std::chrono::seconds{20})));
  GdbOptions options = from_start(extended({}));
  options.symbols = inferior("spin");
  GdbSession gdb{std::move(options)};
  gdb.run("attach " + std::to_string(program.pid()));
  gdb.run_all({"tbreak usleep", "continue"});
  ASSERT_THAT(gdb.run("record btrace"), IsEmpty());
  EXPECT_GT(recorded_counts(gdb).instructions, 0U);
  gdb.run_all({"record stop", "set var go_on = 1"});
  EXPECT_THAT(gdb.run("detach"), HasSubstr("Detaching"));
  const auto status = program.wait(deadline_in(std::chrono::seconds{20}));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 3);
}

}  // namespace
}  // namespace backtrail::test
