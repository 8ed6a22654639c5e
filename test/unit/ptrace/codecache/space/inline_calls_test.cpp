// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/inline_calls.hpp"

#include <cstdint>
#include <vector>

#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "test/unit/ptrace/codecache/recorder/stopped_child.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::translate::CallCheck;

class InlineCallsTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::uint8_t> policy() {
    const auto bytes = child_.process().cache_space->memory().policy();
    return {bytes.begin(), bytes.end()};
  }

  StoppedChild child_;
  ThreadMemory memory_ = child_.take_space();
  InlineCalls calls_{child_.process(), child_.process().cache_space->memory()};
};

TEST_F(InlineCallsTest, AreAllThatCanBeWithoutFiltersAndLimits) {
  EXPECT_EQ(calls_.calls(), inline_system_calls());
  EXPECT_FALSE(calls_.restrict_to({}));
  EXPECT_FALSE(calls_.note_limit());
}

TEST_F(InlineCallsTest, FiltersLeaveOutWhatTheyForbid) {
  // Returns EPERM for getpid, and lets everything else be made.
  constexpr std::uint32_t kAllow = 0x7fff0000;
  constexpr std::uint32_t kErrno = 0x00050001;
  SeccompFilters filters;
  filters.add(SeccompFilter{{{0x20, 0, 0, 0},
                             {0x15, 0, 1, static_cast<std::uint32_t>(SYS_getpid)},
                             {0x06, 0, 0, kErrno},
                             {0x06, 0, 0, kAllow}}});
  const auto number = static_cast<std::size_t>(SYS_getpid);
  ASSERT_NE(calls_.calls().at(number), CallCheck::kNever);
  const auto before = policy();
  EXPECT_TRUE(calls_.restrict_to(filters));
  EXPECT_EQ(calls_.calls().at(number), CallCheck::kNever);
  EXPECT_NE(policy(), before);
  EXPECT_FALSE(calls_.restrict_to(filters)) << "nothing new";
}

TEST_F(InlineCallsTest, WritesToFilesAreLeftOutWhileTheyAreWatched) {
  const auto usual = policy();
  calls_.watch_writes();
  EXPECT_NE(policy(), usual);
}

}  // namespace
}  // namespace backtrail::tracee::cache
