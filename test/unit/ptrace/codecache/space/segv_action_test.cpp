// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/segv_action.hpp"

#include <csignal>
#include <cstring>

#include <gtest/gtest.h>

#include "ptrace/os/signal_bits.hpp"
#include "test/unit/ptrace/codecache/recorder/stopped_child.hpp"

namespace backtrail::tracee::cache {
namespace {

/// The child inherits the test's action, and loses it as the kernel takes it away.
class SegvActionTest : public ::testing::Test {
 protected:
  SegvActionTest() : before_{std::signal(SIGSEGV, SIG_IGN)} {}
  ~SegvActionTest() override { (void)std::signal(SIGSEGV, before_); }

  void take_action_away(StoppedChild& child, const ThreadMemory& memory) {
    SegvAction none{KernelSigaction{}};
    ASSERT_TRUE(none.repair(child.thread(), memory, kSegvBit));
  }
  std::uint64_t action_of(StoppedChild& child, const ThreadMemory& memory) {
    // learn() leaves the action that it has read in the thread's scratch memory.
    SegvAction read{KernelSigaction{}};
    read.changed();
    EXPECT_TRUE(read.learn(child.thread(), memory));
    KernelSigaction now;
    std::memcpy(&now, memory.scratch(CacheMemory::kScratchOffset), sizeof now);
    return now.handler;
  }

  const std::uint64_t ignored_ = reinterpret_cast<std::uint64_t>(SIG_IGN);

 private:
  void (*before_)(int);
};

TEST_F(SegvActionTest, OfAnIgnoredSignalIsPutBack) {
  StoppedChild child;
  const ThreadMemory memory = child.take_space();
  EXPECT_EQ(action_of(child, memory), ignored_);
  take_action_away(child, memory);
  EXPECT_EQ(action_of(child, memory), 0U);
  ASSERT_TRUE(child.process().cache_space->segv_action().repair(child.thread(), memory, 0));
  EXPECT_EQ(action_of(child, memory), ignored_);
}

TEST_F(SegvActionTest, IsReadAgainOnlyAfterAChange) {
  StoppedChild child;
  const ThreadMemory memory = child.take_space();
  SegvAction& action = child.process().cache_space->segv_action();
  take_action_away(child, memory);
  ASSERT_TRUE(action.learn(child.thread(), memory));
  ASSERT_TRUE(action.repair(child.thread(), memory, 0));
  EXPECT_EQ(action_of(child, memory), ignored_) << "the action known before";

  take_action_away(child, memory);
  action.changed();
  ASSERT_TRUE(action.learn(child.thread(), memory));
  ASSERT_TRUE(action.repair(child.thread(), memory, 0));
  EXPECT_EQ(action_of(child, memory), 0U) << "the program has changed it";
}

TEST_F(SegvActionTest, TheMaskIsRestored) {
  StoppedChild child;
  const ThreadMemory memory = child.take_space();
  ASSERT_TRUE(child.process().cache_space->segv_action().repair(child.thread(), memory, kSegvBit));
  const auto mask = request::read_signal_mask(child.thread().tid());
  ASSERT_TRUE(mask);
  EXPECT_EQ(*mask & kSegvBit, kSegvBit);
}

}  // namespace
}  // namespace backtrail::tracee::cache
