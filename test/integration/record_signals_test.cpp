// SPDX-License-Identifier: Apache-2.0
// Job control and storms of signals: recorded programs behave as without a tracer.

#include <string>

#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/own_affinity.hpp"

namespace backtrail::test {
namespace {

Words program(const std::string& name, const Words& arguments) {
  return with({BT_INFERIOR_DIR "/" + name}, arguments);
}

class RecordSource : public testing::TestWithParam<const char*> {
 protected:
  static bool steps() { return std::string{GetParam()} == "step"; }
  /// Where every instruction is stepped, the program is linked statically: the dynamic linker would
  /// take most of the steps.
  static std::string variant(const std::string& name) { return steps() ? name + "_static" : name; }
  static void expect_right(const Words& words) {
    const Ran ran = record(with({"--source", GetParam(), "--"}, words));
    EXPECT_EQ(ran.status, 0) << words.back() << "\n" << ran.output;
  }
};

TEST_P(RecordSource, LosesNoStopOfOthers) {
  for (const char* how : {"itself", "outside", "thread", "handler"}) {
    expect_right(program(variant("jobs"), {how}));
  }
}

TEST_P(RecordSource, LetsAThreadGetOnBetweenSignals) {
  // A step takes longer than any of these periods.
  const char* work = steps() ? "100" : "300000";
  for (const char* kind : {"real", "virtual", "prof", "rt"}) {
    expect_right(program(variant("storm"), {"timer", kind, "100", work}));
  }
  expect_right(program(variant("storm"), {"timer", "real", "20", work}));
}

TEST_P(RecordSource, ShowsSignalsOfChildrenBeforeTheirEnds) {
  expect_right(program(variant("storm"), {"children", "20"}));
}

TEST_P(RecordSource, ShowsHandlersTheirFramesAsTheyAre) {
  expect_right(program(variant("storm"), {"fault", "200"}));
  expect_right(program(variant("storm"), {"raise", "200"}));
}

TEST_P(RecordSource, LetsHandlersReturnAnyhow) {
  for (const char* how : {"alone", "beside", "timers"}) {
    expect_right(program("handlers", {how, steps() ? "1" : "100"}));
  }
}

TEST_P(RecordSource, ShowsTheProgramItsOwnAffinity) {
  expect_right(program(variant("affinity"), {steps() ? "2" : "20", "50", allowed_cpus()}));
}

/// Signals of recorded processes are never held back. The program must get on with its work all the
/// same. Where every instruction is stepped, that would take too long.
TEST(RecordSignals, LetsAProgramWorkWhileItsChildSendsSignals) {
  for (const char* how : {"sender", "queue"}) {
    const Ran ran = record(with({"--"}, program("storm", {how, "30000"})));
    EXPECT_EQ(ran.status, 0) << how << "\n" << ran.output;
  }
}

/// Amid signals the recorder and the thread that gets them share one CPU; what begins then must not
/// inherit that.
TEST(RecordSignals, NarrowsItsCpusForNobodyElse) {
  const Words words = shell(
      "cpus() { grep Cpus_allowed_list /proc/$$/status /proc/self/status; }\n"
      "before=$(cpus | sed 's/.*://'); trap : USR1; i=0\n"
      "while [ $i -lt 1000 ]; do kill -USR1 $$; i=$((i + 1)); done\n"
      "after=$(cpus | sed 's/.*://'); echo \"$before, $after\"; [ \"$before\" = \"$after\" ]");
  const Ran ran = record(with({"--"}, words));
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST(RecordNothing, LosesNoStopOfOthers) {
  for (const char* how : {"itself", "outside", "thread", "handler"}) {
    const Ran ran = record(with({"--source", "none", "--"}, program("jobs", {how})));
    EXPECT_EQ(ran.status, 0) << how << "\n" << ran.output;
  }
}

class JobControl : public testing::TestWithParam<const char*> {
 protected:
  static void expect_same(const char* source) {
    const Words words = program("job_control", {GetParam()});
    const Ran native = run(words);
    ASSERT_EQ(native.status, 0) << native.output;
    const Ran recorded = record(with({"--source", source, "--"}, words));
    EXPECT_EQ(recorded.status, 0);
    EXPECT_EQ(recorded.output, native.output);
  }
};

TEST_P(JobControl, TellsParentsTheSame) {
  expect_same("cache");
}

TEST_P(JobControl, TellsParentsTheSameWhereNothingIsRecorded) {
  expect_same("none");
}

INSTANTIATE_TEST_SUITE_P(All, JobControl,
                         testing::Values("vfork", "exec", "threads", "orphan", "terminal", "calls",
                                         "masks", "ends"),
                         [](const auto& test) { return std::string{test.param}; });

/// Only the cases with few instructions, because each is stepped.
TEST(JobControlStepped, TellsParentsTheSame) {
  for (const char* how : {"masks", "ends"}) {
    const Words words = program("job_control_static", {how});
    const Ran native = run(words);
    const Ran recorded = record(with({"--source", "step", "--"}, words));
    EXPECT_EQ(recorded.status, 0) << how;
    EXPECT_EQ(recorded.output, native.output) << how;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordSource, testing::Values("cache", "step"),
                         [](const auto& test) { return std::string{test.param}; });

}  // namespace
}  // namespace backtrail::test
