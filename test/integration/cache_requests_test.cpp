// SPDX-License-Identifier: Apache-2.0
// Translation requests whose thread no longer waits.

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "ptrace/codecache/space/cache_space.hpp"

namespace backtrail::tracee {
namespace {

using arch::x86::translate::Request;
using arch::x86::translate::Slot;

/// A thread may be stopped while it waits. Its request must not stay: it would be served when the
/// thread runs again, and the thread could take that answer for the next one.
TEST(Requests, EndWhenTheThreadIsStopped) {
  int planted = 0;
  int left = 0;
  const Outcome outcome = run_recorded({.program = "jit",
                                        .arguments = {"rewrite", "300"},
                                        .stops = 20,
                                        .at_stop = [&](EngineDriver&, Thread& thread) {
                                          const auto space = thread.process().cache_space;
                                          if (!space) return;
                                          cache::ThreadMemory page = space->memory().thread(0);
                                          const auto asked =
                                              static_cast<std::uint64_t>(Request::kAsked);
                                          if (planted > 0 && page.read(Slot::kRequest) == asked)
                                            ++left;
                                          page.write(Slot::kRequest, asked);
                                          ++planted;
                                        }});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
  EXPECT_GT(planted, 1);
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace backtrail::tracee
