// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/thread_memory.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

constexpr TraceeAddr kBase{0x7000'0000};

class ThreadMemoryTest : public testing::Test {
 protected:
  std::vector<std::uint8_t> host_ = std::vector<std::uint8_t>(kThreadBytes);
  ThreadMemory memory_{host_.data(), kBase};
};

TEST_F(ThreadMemoryTest, HasTheEntriesBeforeALogPointer) {
  EXPECT_TRUE(memory_.entries(memory_.log_begin()).empty());
  EXPECT_EQ(memory_.entries(memory_.log_begin() + 8).size(), 2U);
  EXPECT_EQ(memory_.entries(memory_.log_end()).size(), kLogBytes / sizeof(std::uint32_t));
}

TEST_F(ThreadMemoryTest, HasNoneBeforeAPointerThatIsNoLogPointer) {
  for (const TraceeAddr rubbish :
       {memory_.log_begin() - 4, memory_.log_begin() + 5, memory_.log_end() + 4, TraceeAddr{},
        TraceeAddr{~std::uint64_t{0}}}) {
    EXPECT_TRUE(memory_.entries(rubbish).empty());
    EXPECT_FALSE(memory_.log().holds(rubbish));
  }
}

}  // namespace
}  // namespace backtrail::tracee::cache
