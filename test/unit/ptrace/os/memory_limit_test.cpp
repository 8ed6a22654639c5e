// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/memory_limit.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

class MemoryLimit : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root() + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text << '\n';
  }
  [[nodiscard]] std::string root() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(MemoryLimit, IsThatOfTheGroup) {
  write("/a/b/memory.max", "1000");
  write("/a/memory.max", "max");
  EXPECT_EQ(memory_cgroup_limit("0::/a/b\n", root()), 1000U);
}

TEST_F(MemoryLimit, MayBeThatOfAGroupAround) {
  write("/a/b/memory.max", "1000");
  write("/a/memory.max", "900");
  write("/memory.max", "950");
  EXPECT_EQ(memory_cgroup_limit("0::/a/b\n", root()), 900U);
}

TEST_F(MemoryLimit, OfANamespaceIsInItsRoot) {
  write("/memory.max", "800");
  EXPECT_EQ(memory_cgroup_limit("0::/\n", root()), 800U);
}

TEST_F(MemoryLimit, OfVersionOneIsInAFolderOfItsOwn) {
  write("/memory/a/memory.limit_in_bytes", "700");
  EXPECT_EQ(memory_cgroup_limit("5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n", root()), 700U);
}

TEST_F(MemoryLimit, MayBeMissing) {
  for (const char* text : {"", "\n", "x", "4:memory", "4:memory:/a\n", "0::/a", "0::"}) {
    EXPECT_EQ(memory_cgroup_limit(text, root()), kNone) << text;
  }
}

TEST(MemoryAtHand, IsThatOfTheMachineAtMost) {
  EXPECT_GT(memory_at_hand(), 0U);
  EXPECT_LT(memory_at_hand(), kNone);
}

}  // namespace
}  // namespace backtrail::tracee
