// SPDX-License-Identifier: Apache-2.0
// What the cache source tells of code that it steps.

#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache_run.hpp"

namespace backtrail::tracee {
namespace {

/// A fact of executed code: the number of its record, its address, its bytes and its kind.
using Fact = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, unsigned>;

/// Steps a program that changes its code, with a mark of time after each step if `is_marked`.
std::vector<Fact> facts_of_steps(bool is_marked) {
  constexpr std::uint64_t kSteps = 400;  // several versions of a function
  Outcome outcome;
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("changes_itself");
  const ThreadId id{pid, pid};
  collect(driver, id, {}, outcome);
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    driver.resume(id, {.kind = ResumeKind::kStep});
    Thread* thread = driver.await() ? driver.engine.find(id) : nullptr;
    if (thread == nullptr || !thread->trace()) {
      ADD_FAILURE() << "ended after " << i << " steps";
      return {};
    }
    if (is_marked) thread->trace()->source().pin(i, 0);
  }
  EXPECT_TRUE(driver.engine.disable_trace(id));
  EXPECT_TRUE(driver.engine.kill(pid));
  std::vector<Fact> facts;
  for (const decoder::ValueFact& fact : outcome.threads.front()->facts) {
    facts.emplace_back(fact.record, fact.pc.value(), fact.value, fact.kind);
  }
  return facts;
}

/// A mark between two instructions does not make the bytes of the first one unknown.
TEST(SteppedCode, MarksOfTimeChangeNoFacts) {
  const std::vector<Fact> unmarked = facts_of_steps(false);
  ASSERT_THAT(unmarked, testing::SizeIs(testing::Gt(20U)));
  EXPECT_EQ(facts_of_steps(true), unmarked);
}

}  // namespace
}  // namespace backtrail::tracee
