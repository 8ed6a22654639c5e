// SPDX-License-Identifier: Apache-2.0
// Code that programs write while they run.

#include <string>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "ptrace/codecache/space/cache_space.hpp"

namespace backtrail::tracee {
namespace {

class WrittenCode : public testing::TestWithParam<const char*> {};

TEST_P(WrittenCode, IsRunAsItIs) {
  const Outcome outcome =
      run_recorded({.program = "jit", .arguments = {GetParam()}, .threads = true});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
}

TEST_P(WrittenCode, IsRunAsItIsWhenInterruptedOften) {
  const Outcome outcome = run_recorded(
      {.program = "jit", .arguments = {GetParam(), "200"}, .stops = 200, .threads = true});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
}

INSTANTIATE_TEST_SUITE_P(Kinds, WrittenCode,
                         testing::Values("rewrite", "loop", "mappings", "toggle", "itself",
                                         "threads", "fork"),
                         [](const auto& test) { return std::string{test.param}; });

/// The cache runs out of memory and evicts everything, again and again.
TEST(CodeMemory, MayRunOutAnyTime) {
  struct Case {
    std::string program;
    std::vector<std::string> arguments;
    std::uint64_t memory;
  };
  for (const Case& c :
       {Case{"branches", {}, 64UL * 1024}, Case{"jit", {"rewrite", "300"}, 64UL * 1024},
        Case{"mixed_threads", {"2"}, 96UL * 1024}}) {
    std::shared_ptr<cache::CacheSpace> space;
    const Outcome outcome = run_recorded({.program = c.program,
                                          .arguments = c.arguments,
                                          .stops = 5,
                                          .threads = true,
                                          .at_stop = [&](EngineDriver&, Thread& thread) {
                                            space = thread.process().cache_space;
                                            if (space) space->code().limit(c.memory);
                                          }});
    EXPECT_TRUE(outcome.exited_with(0)) << c.program << " " << outcome.end.exit_code;
    ASSERT_TRUE(space) << c.program;
    EXPECT_GT(space->code().cleared(), 0U) << c.program << " " << outcome.statistics;
  }
}

}  // namespace
}  // namespace backtrail::tracee
