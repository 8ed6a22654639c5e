// SPDX-License-Identifier: Apache-2.0
// Restartable sequences (rseq) stay whole while a software source executes the program.

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "test/support/effort.hpp"

namespace backtrail::tracee {
namespace {

struct SectionsCase {
  SourceKind source;
  std::string program;
  std::string kind;
};

void PrintTo(const SectionsCase& tested, std::ostream* out) {
  *out << to_string(tested.source) << ' ' << tested.program << ' ' << tested.kind;
}

class RestartableSequences : public testing::TestWithParam<SectionsCase> {};

TEST_P(RestartableSequences, LoseNoCount) {
  const SectionsCase& c = GetParam();
  const Outcome outcome = run_recorded(
      {.source = c.source, .program = c.program, .arguments = {c.kind}, .threads = true});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
}

TEST_P(RestartableSequences, LoseNoCountWhenInterruptedOften) {
  const SectionsCase& c = GetParam();
  const Outcome outcome = run_recorded({.source = c.source,
                                        .program = c.program,
                                        .arguments = {c.kind},
                                        .stops = 200,
                                        .threads = true});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
}

std::vector<SectionsCase> sections_cases() {
  std::vector<SectionsCase> all{{SourceKind::kCache, "percpu", "fill"},
                                {SourceKind::kCache, "percpu", "loop"},
                                {SourceKind::kCache, "percpu_static", "fill"},
                                {SourceKind::kStep, "percpu_static", "loop"}};
  // This case executes the same code many times by steps.
  if (!test::kSanitized) all.push_back({SourceKind::kStep, "percpu_static", "fill"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Sources, RestartableSequences, testing::ValuesIn(sections_cases()),
                         [](const auto& test) {
                           const SectionsCase& c = test.param;
                           return std::string{to_string(c.source)} + "_" + c.program + "_" + c.kind;
                         });

}  // namespace
}  // namespace backtrail::tracee
