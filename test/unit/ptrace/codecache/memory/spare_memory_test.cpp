// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/spare_memory.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

/// Returns memory of which this many segments are populated.
std::unique_ptr<MemoryFile> memory(std::size_t segments = 0) {
  auto made = MemoryFile::make();
  if (!made) return nullptr;
  for (std::size_t i = 0; i < segments; ++i) {
    while ((*made)->prepare_segment(0, i)) {
    }
  }
  return std::move(*made);
}

class SpareMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto probe = memory();
    ASSERT_TRUE(probe);
    if (!probe->is_ours_alone()) GTEST_SKIP() << "no leases on memory files: fcntl(2), F_SETLEASE";
  }
  /// Gives it away; returns where it is.
  const MemoryFile* give(std::unique_ptr<MemoryFile> memory, const std::string& program) {
    const MemoryFile* at = memory.get();
    spare_.give(std::move(memory), program);
    return at;
  }
  SpareMemory spare_{SpareMemory::kMostBytes};
};

TEST_F(SpareMemoryTest, HasNoneAtFirst) {
  EXPECT_EQ(spare_.take("/bin/true"), nullptr);
}

TEST_F(SpareMemoryTest, IsTakenOnce) {
  const MemoryFile* at = give(memory(), "/bin/true");
  EXPECT_EQ(spare_.take("/bin/true").get(), at);
  EXPECT_EQ(spare_.take("/bin/true"), nullptr);
}

TEST_F(SpareMemoryTest, StaysWhileAnotherDescriptionIsOpen) {
  auto given = memory();
  UniqueFd other{::open(("/proc/self/fd/" + std::to_string(given->fd())).c_str(), O_RDWR)};
  ASSERT_TRUE(other);
  const MemoryFile* at = give(std::move(given), "/bin/true");
  EXPECT_EQ(spare_.take("/bin/true"), nullptr);
  other.reset();
  EXPECT_EQ(spare_.take("/bin/true").get(), at);
}

TEST_F(SpareMemoryTest, StaysWhileAnotherMappingIsThere) {
  auto given = memory();
  UniqueFd other{::open(("/proc/self/fd/" + std::to_string(given->fd())).c_str(), O_RDWR)};
  void* mapped = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, other.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  other.reset();
  const MemoryFile* at = give(std::move(given), "/bin/true");
  EXPECT_EQ(spare_.take("/bin/true"), nullptr);
  ::munmap(mapped, kPageBytes);
  EXPECT_EQ(spare_.take("/bin/true").get(), at);
}

TEST_F(SpareMemoryTest, PrefersThatOfTheSameProgram) {
  give(memory(), "/bin/sh");
  const MemoryFile* compiler = give(memory(1), "/usr/bin/cc1");
  give(memory(), "/bin/true");
  EXPECT_EQ(spare_.take("/usr/bin/cc1").get(), compiler);
}

TEST_F(SpareMemoryTest, LeavesThatOfOthersToThemWhileThereIsRoom) {
  for (std::size_t i = 0; i + 1 < SpareMemory::kEnough; ++i) give(memory(), "/bin/sh");
  EXPECT_EQ(spare_.take("/bin/true"), nullptr);
  const MemoryFile* shell = give(memory(), "/bin/sh");
  EXPECT_NE(spare_.take("/bin/true"), nullptr);
  EXPECT_EQ(spare_.take("/bin/sh").get(), shell);
}

TEST_F(SpareMemoryTest, TakesWhatHasWaitedTheLongest) {
  const MemoryFile* compiler = give(memory(1), "/usr/bin/cc1");
  for (std::size_t i = 0; i < SpareMemory::kEnough; ++i) give(memory(), "/bin/sh");
  EXPECT_EQ(spare_.take("/bin/true").get(), compiler);
}

TEST_F(SpareMemoryTest, TakesThatOfOthersWhereBytesAreScarce) {
  constexpr std::size_t kSegments = 2;
  auto given = memory(kSegments);
  SpareMemory little{given->populated()};
  const MemoryFile* compiler = given.get();
  little.give(std::move(given), "/usr/bin/cc1");
  EXPECT_EQ(little.take("/bin/true").get(), compiler);
}

TEST_F(SpareMemoryTest, TakesAnotherIfTheBestIsInUse) {
  auto given = memory();
  const UniqueFd other{::open(("/proc/self/fd/" + std::to_string(given->fd())).c_str(), O_RDWR)};
  const MemoryFile* older = give(memory(), "/bin/true");
  give(std::move(given), "/bin/true");
  EXPECT_EQ(spare_.take("/bin/true").get(), older);
}

TEST_F(SpareMemoryTest, LeavesHalfOfTheDescriptorsFree) {
  auto low = memory();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{2 * static_cast<rlim_t>(low->fd()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_FALSE(SpareMemory::may_hold(*low));
  give(std::move(low), "/bin/true");
  EXPECT_EQ(spare_.take("/bin/true"), nullptr);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(SpareMemoryTest, IsNotDisturbedByWhoOpensIt) {
  const auto file = memory();
  const std::string path = "/proc/self/fd/" + std::to_string(file->fd());
  std::atomic<bool> ends = false;
  std::atomic<int> opened = 0;
  std::thread other{[&] {
    while (!ends) {
      const UniqueFd mine{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
      opened += mine.valid() ? 1 : 0;
    }
  }};
  constexpr int kEnough = 2000;
  while (opened < kEnough) (void)file->is_ours_alone();
  ends = true;
  other.join();
  EXPECT_TRUE(file->is_ours_alone());
}

TEST_F(SpareMemoryTest, KeepsNoMoreThanItsLimits) {
  for (std::size_t i = 0; i < SpareMemory::kMost + 3; ++i) give(memory(), "/bin/true");
  std::size_t kept = 0;
  while (spare_.take("/bin/true")) ++kept;
  EXPECT_EQ(kept, SpareMemory::kMost);

  constexpr std::size_t kSegments = 2;
  const std::uint64_t each = memory(kSegments)->populated();
  EXPECT_GE(each, kSegments * kSegmentBytes);
  for (std::size_t i = 0; i < SpareMemory::kMost; ++i) give(memory(kSegments), "/usr/bin/cc1");
  kept = 0;
  while (spare_.take("/usr/bin/cc1")) ++kept;
  EXPECT_EQ(kept, std::min<std::uint64_t>(SpareMemory::kMost, SpareMemory::kMostBytes / each));
}

TEST(MemoryFileTest, IsClearedOfWhatOneProgramLeftToTheNext) {
  const auto file = memory();
  ASSERT_TRUE(file);
  constexpr std::size_t kParts = 3;
  const auto page = [&](std::size_t part) {
    return std::span{file->host() + MemoryFile::kThreadsAt + part * kThreadBytes,
                     arch::cpu::translate::kThreadPageBytes};
  };
  std::fill(file->policy().begin(), file->policy().end(), std::uint8_t{7});
  for (std::size_t part = 0; part < kParts; ++part) {
    std::fill(page(part).begin(), page(part).end(), std::uint8_t{7});
  }
  file->note_parts(kParts);
  file->note_areas(2);
  file->clear();
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  EXPECT_TRUE(std::all_of(file->policy().begin(), file->policy().end(), is_zero));
  for (std::size_t part = 0; part < kParts; ++part) {
    EXPECT_TRUE(std::all_of(page(part).begin(), page(part).end(), is_zero)) << part;
  }
  // Logs may still be where they were.
  EXPECT_EQ(file->areas_ever(), 2U);
}

}  // namespace
}  // namespace backtrail::tracee::cache
