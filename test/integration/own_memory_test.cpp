// SPDX-License-Identifier: Apache-2.0
// Programs that change the recorder's memory as if it were theirs.

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "test/support/machine.hpp"

namespace backtrail::tracee {
namespace {

Outcome run_writer(const char* how) {
  return run_recorded({.program = "maps_writer", .arguments = {how}, .threads = true});
}

bool makes_compat_calls(std::string_view how) {
  return how.ends_with("old") || how.ends_with("ipc");
}

/// Calls that have no effect on the recorder's memory.
class OwnMemory : public testing::TestWithParam<const char*> {};

TEST_P(OwnMemory, IsNotTheirs) {
  if (makes_compat_calls(GetParam()) && !test::has_compat_calls()) {
    GTEST_SKIP() << test::kNoCompatCalls;
  }
  const Outcome outcome = run_writer(GetParam());
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
  EXPECT_EQ(outcome.statistics.find("stepping"), std::string::npos) << outcome.statistics;
}

INSTANTIATE_TEST_SUITE_P(Programs, OwnMemory,
                         testing::Values("writes", "spoils", "data", "hides", "unmaps", "moves",
                                         "discards", "around", "old"),
                         [](const auto& test) { return std::string{test.param}; });

/// Calls that map something over the recorder's memory.
class OwnMemoryPlace : public testing::TestWithParam<const char*> {};

TEST_P(OwnMemoryPlace, IsGivenUpForTheProgramsMemory) {
  if (makes_compat_calls(GetParam()) && !test::has_compat_calls()) {
    GTEST_SKIP() << test::kNoCompatCalls;
  }
  const Outcome outcome = run_writer(GetParam());
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
}

INSTANTIATE_TEST_SUITE_P(Programs, OwnMemoryPlace,
                         testing::Values("replaces", "attaches", "attaches_old", "attaches_ipc",
                                         "maps_old"),
                         [](const auto& test) { return std::string{test.param}; });

TEST(OwnMemoryFile, MayHoldRubbish) {
  const Outcome outcome = run_writer("file");
  EXPECT_FALSE(outcome.exited_with(5)) << "the file's size has changed";
}

}  // namespace
}  // namespace backtrail::tracee
