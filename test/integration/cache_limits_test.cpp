// SPDX-License-Identifier: Apache-2.0
// Limits of address space do not count what the recorder maps in the program.

#include <csignal>
#include <optional>
#include <string>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "ptrace/codecache/space/cache_space.hpp"

namespace backtrail::tracee {
namespace {

class AddressLimits : public testing::TestWithParam<const char*> {};

TEST_P(AddressLimits, AreTheProgramsOwn) {
  const Outcome outcome =
      run_recorded({.program = "limits", .arguments = {GetParam()}, .threads = true});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
  EXPECT_EQ(outcome.statistics.find("stepping"), std::string::npos) << outcome.statistics;
}

INSTANTIATE_TEST_SUITE_P(Programs, AddressLimits,
                         testing::Values("set", "soft", "thread", "refused", "exec", "vfork",
                                         "fork", "lock", "pending"),
                         [](const auto& test) { return std::string{test.param}; });

constexpr rlim_t kLimit = 300UL << 20;

std::optional<rlim_t> soft_limit_of(pid_t pid) {
  rlimit limit{};
  if (::prlimit(pid, RLIMIT_AS, nullptr, &limit) != 0) return std::nullopt;
  return limit.rlim_cur;
}

/// Runs until the program has set its limit.
void run_until_limited(EngineDriver& driver, pid_t pid) {
  ASSERT_TRUE(driver.engine.enable_trace({pid, pid}, {TraceFormat::kBts, 0}));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->signal, SIGWINCH);
}

TEST(AddressLimit, IsPutBackWhenTheProgramIsLetGo) {
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("limits", {"wait"});
  run_until_limited(driver, pid);
  EXPECT_EQ(soft_limit_of(pid), kLimit + cache::CacheMemory::kMappedBytes);
  ASSERT_TRUE(driver.engine.detach(pid));
  EXPECT_EQ(soft_limit_of(pid), kLimit);
  ::kill(pid, SIGKILL);
}

TEST(AddressLimit, IsPutBackWhenRecordingEnds) {
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("limits", {"wait"});
  run_until_limited(driver, pid);
  ASSERT_TRUE(driver.engine.disable_trace({pid, pid}));
  EXPECT_EQ(soft_limit_of(pid), kLimit);
  ASSERT_TRUE(driver.engine.kill(pid));
}

}  // namespace
}  // namespace backtrail::tracee
