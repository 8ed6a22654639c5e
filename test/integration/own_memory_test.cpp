// SPDX-License-Identifier: Apache-2.0
// Programs that change the recorder's memory as if it were theirs.

#include <string>

#include <gtest/gtest.h>

#include "cache_run.hpp"

namespace backtrail::tracee {
namespace {

Outcome run_writer(const char* how) {
  return run_recorded({.program = "maps_writer", .arguments = {how}, .threads = true});
}

/// Exit status of a program that wants to make calls by INT 0x80, if the kernel has none.
constexpr int kNoSuchCalls = 77;

/// Calls that have no effect on the recorder's memory.
class OwnMemory : public testing::TestWithParam<const char*> {};

TEST_P(OwnMemory, IsNotTheirs) {
  const Outcome outcome = run_writer(GetParam());
  if (outcome.exited_with(kNoSuchCalls)) GTEST_SKIP() << "no INT 0x80";
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
  const Outcome outcome = run_writer(GetParam());
  if (outcome.exited_with(kNoSuchCalls)) GTEST_SKIP() << "no INT 0x80";
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
