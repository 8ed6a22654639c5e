// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/memory_file.hpp"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace backtrail::tracee::cache {
namespace {

TEST(MemoryFile, HasItsSizeForGood) {
  const auto file = MemoryFile::make();
  ASSERT_TRUE(file);
  for (const off_t size : {off_t{0}, off_t{1} << 40}) {
    EXPECT_EQ(::ftruncate((*file)->fd(), size), -1);
    EXPECT_EQ(errno, EPERM);
  }
  // New mappings of it can be written.
  EXPECT_EQ(::fcntl((*file)->fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
  struct stat facts {};
  ASSERT_EQ(::fstat((*file)->fd(), &facts), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(facts.st_size), MemoryFile::kBytes);
}

}  // namespace
}  // namespace backtrail::tracee::cache
