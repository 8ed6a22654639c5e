// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/disk_queue.hpp"

#include <cerrno>
#include <numeric>

#include <sys/stat.h>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

std::vector<std::uint8_t> bytes_from(std::uint64_t first, std::size_t count) {
  std::vector<std::uint8_t> out(count);
  std::iota(out.begin(), out.end(), static_cast<std::uint8_t>(first));
  return out;
}

TEST(DiskQueue, GivesBackWhatWentInInOrder) {
  auto queue = DiskQueue::create(testing::TempDir(), 1U << 20U);
  ASSERT_TRUE(queue);
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  for (std::size_t round = 1; round < 200; ++round) {
    ASSERT_TRUE(queue->push(bytes_from(in, round * 7)));
    in += round * 7;
    std::vector<std::uint8_t> taken(round * 5);
    const auto count = queue->pop(taken);
    ASSERT_TRUE(count);
    taken.resize(*count);
    ASSERT_EQ(taken, bytes_from(out, *count));
    out += *count;
    ASSERT_EQ(queue->waiting(), in - out);
  }
  std::vector<std::uint8_t> rest(in);
  EXPECT_EQ(queue->pop(rest), in - out);
  EXPECT_EQ(queue->pop(rest), 0U);
}

TEST(DiskQueue, TakesAllOrNothingWhenFull) {
  auto queue = DiskQueue::create(testing::TempDir(), 100);
  ASSERT_TRUE(queue);
  ASSERT_TRUE(queue->push(bytes_from(0, 60)));
  const auto refused = queue->push(bytes_from(60, 41));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code.value(), ENOSPC);
  ASSERT_TRUE(queue->push(bytes_from(60, 40)));
  std::vector<std::uint8_t> taken(200);
  EXPECT_EQ(queue->pop(taken), 100U);
  EXPECT_TRUE(queue->push(bytes_from(0, 100)));
}

TEST(DiskQueue, NeedsAFolderThatCanBeWrittenTo) {
  EXPECT_FALSE(DiskQueue::create("/proc/self/fdinfo", 1));
  EXPECT_FALSE(DiskQueue::create(testing::TempDir() + "absent", 1));
}

}  // namespace
}  // namespace backtrail::tracee
