// SPDX-License-Identifier: Apache-2.0
// Tests whole runs of real programs: every value that is claimed to be known must be true.

#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "judged_trails.hpp"
#include "judged_values.hpp"
#include "test/support/effort.hpp"

namespace backtrail::decoder::values {
namespace {

using Case = std::tuple<const char*, const char*>;

class ValuesTruth : public testing::TestWithParam<Case> {};

TEST_P(ValuesTruth, EveryKnownValueIsTrue) {
  const auto [name, level] = GetParam();
  if (std::string{level} == "O3" && !__builtin_cpu_supports("avx2")) {
    GTEST_SKIP() << "The program needs AVX2.";
  }
  TruthOptions options;
  options.from_trap = true;
  options.most_steps = test::kSanitized ? 18'000 : 60'000;
  const std::string program = std::string{BT_INFERIOR_DIR} + "/values_" + name + "_" + level;
  TruthRun run{{program}, options};
  ASSERT_TRUE(run.ok()) << run.error();
  ASSERT_GT(run.steps().size(), 1000U);
  // Windows of different lengths meet at different places and know different values.
  struct Way {
    std::size_t window;
    TruthRun::Recorded recorded;
    const char* words;
  };
  using Recorded = TruthRun::Recorded;
  std::vector<Way> ways{Way{40'000, Recorded::kNothing, ""},
                        Way{40'000, Recorded::kRegisters, ", recorded values"},
                        Way{700, Recorded::kOldBytes, ", old bytes"}};
  if (!test::kSanitized) {
    ways.insert(ways.end(), {Way{700, Recorded::kNothing, ""},
                             Way{40'000, Recorded::kOldBytes, ", old bytes"}});
  }
  for (const auto& [window, recorded, words] : ways) {
    run.set_recorded(recorded);
    const Judgement judgement = judge(run, {window, 1000});
    EXPECT_TRUE(judgement.consistent);
    EXPECT_EQ(judgement.wrong_count, 0U) << judgement.text();
    for (const std::string& line : judgement.wrong) ADD_FAILURE() << line;
    EXPECT_GT(judgement.compared_bits, 100'000U);
    const TrailJudgement trails = judge_trails(run, {window, 1000}, 200);
    EXPECT_EQ(trails.wrong_count, 0U);
    for (const std::string& line : trails.wrong) ADD_FAILURE() << line;
    EXPECT_GT(trails.compared, 500U);
    std::printf("%s -%s, windows of %zu%s: %s\n", name, level, window, words,
                judgement.text().c_str());
  }
}

std::vector<Case> programs() {
  std::vector<Case> out;
  for (const char* name : {"sorts", "prints", "jumps", "signals", "maps", "loops", "objects"}) {
    for (const char* level : {"O0", "O2", "O3"}) out.emplace_back(name, level);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Programs, ValuesTruth, testing::ValuesIn(test::every(2, programs())),
                         [](const auto& test) {
                           return std::string{std::get<0>(test.param)} + "_" +
                                  std::get<1>(test.param);
                         });

TEST(ValuesTruthOfStops, StopsInTheMiddleOfARun) {
  for (const std::size_t steps : {2'000U, 9'000U, 17'000U}) {
    TruthOptions options;
    options.from_trap = true;
    options.stop_after = steps;
    TruthRun run{{std::string{BT_INFERIOR_DIR} + "/values_sorts_O2"}, options};
    ASSERT_TRUE(run.ok()) << run.error();
    const Judgement judgement = judge(run, {});
    EXPECT_TRUE(judgement.consistent);
    EXPECT_EQ(judgement.wrong_count, 0U) << judgement.text();
    // A lower bound that may only be raised.
    EXPECT_GT(judgement.registers[0].percent(), 50);
  }
}

/// Calls that returned hide the stack pointer and the callers' registers, but for what they saved.
/// How much is known before one stop depends on the compiler's code there, so that only the mean of
/// several stops says something: without links by the stack it is at most 37 %, with them at least
/// 67 % (g++ 12 and 14).
TEST(ValuesTruthOfStops, RestoredRegistersAreKnown) {
  constexpr std::size_t kFirst = 21'000;
  constexpr std::size_t kApart = 3'000;
  constexpr int kStops = 5;
  double sum = 0;
  for (int i = 0; i < kStops; ++i) {
    TruthOptions options;
    options.from_trap = true;
    options.stop_after = kFirst + kApart * static_cast<std::size_t>(i);
    TruthRun run{{std::string{BT_INFERIOR_DIR} + "/values_objects_O0"}, options};
    ASSERT_TRUE(run.ok()) << run.error();
    ASSERT_EQ(run.steps().size(), options.stop_after);
    const Judgement judgement = judge(run, {});
    EXPECT_TRUE(judgement.consistent);
    EXPECT_EQ(judgement.wrong_count, 0U) << judgement.text();
    sum += judgement.registers[0].percent();
  }
  EXPECT_GT(sum / kStops, 50);
}

}  // namespace
}  // namespace backtrail::decoder::values
