// Restartable sequences: software that executes a program must leave them whole.

#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "cache_run.hpp"

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

INSTANTIATE_TEST_SUITE_P(Sources, RestartableSequences,
                         testing::Values(SectionsCase{SourceKind::kCache, "percpu", "fill"},
                                         SectionsCase{SourceKind::kCache, "percpu", "loop"},
                                         SectionsCase{SourceKind::kCache, "percpu_static", "fill"},
                                         SectionsCase{SourceKind::kStep, "percpu", "fill"},
                                         SectionsCase{SourceKind::kStep, "percpu", "loop"}),
                         [](const auto& test) {
                           const SectionsCase& c = test.param;
                           return std::string{to_string(c.source)} + "_" + c.program + "_" + c.kind;
                         });

}  // namespace
}  // namespace backtrail::tracee
