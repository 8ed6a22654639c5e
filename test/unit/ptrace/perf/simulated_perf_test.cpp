// SPDX-License-Identifier: Apache-2.0
// Every known misbehaviour of a kernel, one row each, and how a reader must handle it.

#include <ostream>
#include <set>

#include "test/unit/ptrace/perf/perf_fixture.hpp"

namespace backtrail::tracee::simulated {

void PrintTo(const Case& row, std::ostream* out);
void PrintTo(const Case& row, std::ostream* out) {
  *out << row.what;
}

namespace {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto& cases : {ring_cases(), open_cases(), aux_cases(), other_cases(), call_cases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

class SimulatedKernel : public testing::TestWithParam<Case> {};

TEST_P(SimulatedKernel, IsSurvived) {
  GetParam().check();
}
INSTANTIATE_TEST_SUITE_P(Simulated, SimulatedKernel, testing::ValuesIn(all_cases()),
                         [](const auto& row) { return "Row" + std::to_string(row.param.number); });

TEST(SimulatedKernelTable, KnowsAtLeastSixtyMisbehaviours) {
  std::set<int> numbers;
  for (const Case& row : all_cases()) EXPECT_TRUE(numbers.insert(row.number).second) << row.number;
  EXPECT_GE(numbers.size(), 60U);
}

}  // namespace
}  // namespace backtrail::tracee::simulated
