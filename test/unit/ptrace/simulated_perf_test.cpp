// Every way in which a kernel is known to misbehave, one row each: what a reader must make of it.

#include <set>

#include "test/unit/ptrace/perf_fixture.hpp"

namespace backtrail::tracee::simulated {
namespace {

void run(const std::vector<Case>& cases) {
  for (const Case& row : cases) {
    SCOPED_TRACE(std::to_string(row.number) + ": " + row.what);
    row.check();
  }
}

TEST(SimulatedKernel, RingsAreSurvived) {
  run(ring_cases());
}
TEST(SimulatedKernel, RefusalsAreSurvived) {
  run(open_cases());
}
TEST(SimulatedKernel, AuxAreasAreSurvived) {
  run(aux_cases());
}
TEST(SimulatedKernel, StacksPacketsAndMarksAreSurvived) {
  run(other_cases());
}

TEST(SimulatedKernel, KnowsAtLeastSixtyMisbehaviours) {
  std::set<int> numbers;
  for (const auto& cases : {ring_cases(), open_cases(), aux_cases(), other_cases()})
    for (const Case& row : cases) EXPECT_TRUE(numbers.insert(row.number).second) << row.number;
  EXPECT_GE(numbers.size(), 60U);
}

}  // namespace
}  // namespace backtrail::tracee::simulated
