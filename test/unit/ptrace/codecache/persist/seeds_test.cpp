// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/seeds.hpp"

#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ptrace/codecache/persist/kept_name.hpp"
#include "ptrace/codecache/program/program_kind.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee::cache {
namespace {

class SeedFiles : public testing::Test {
 protected:
  [[nodiscard]] std::optional<Seed> found(const std::string& kind) const {
    return Seeds{folder_.path()}.find(kind, true);
  }
  void write(const std::string& kind, const std::string& text) const {
    std::ofstream{folder_ / kept_name(kind, "like")} << text;
  }
  test::TemporaryFolder folder_;
};

TEST_F(SeedFiles, OthersFindWhatWasSet) {
  Seeds ours{folder_.path()};
  ours.set("kind", {"/bin/some program 1 2", 77}, true);
  const auto who = found("kind");
  ASSERT_TRUE(who);
  EXPECT_EQ(who->key, "/bin/some program 1 2");
  EXPECT_EQ(who->shared, 77U);
  EXPECT_FALSE(found("other kind"));
  ours.set("kind", {"/bin/better", 99}, true);
  EXPECT_EQ(found("kind")->key, "/bin/better");
}

TEST_F(SeedFiles, InMemoryOnlyWhereTheFolderIsNotToBeTrusted) {
  Seeds ours{folder_.path()};
  ours.set("kind", {"key", 1}, false);
  EXPECT_EQ(ours.find("kind", false)->key, "key");
  EXPECT_FALSE(found("kind"));
  write("kind", "kind\n1\nkey\n");
  EXPECT_TRUE(found("kind"));
  EXPECT_FALSE(Seeds{folder_.path()}.find("kind", false));
}

TEST_F(SeedFiles, AnythingElseIsNone) {
  for (const char* text :
       {"", "kind", "kind\n", "kind\n1", "kind\n1\n", "kind\n1\nkey", "kind\n\nkey\n",
        "kind\nx\nkey\n", "kind\n1x\nkey\n", "kind\n1\nkey\nmore\n", "other\n1\nkey\n",
        "kind\n99999999999999999999999\nkey\n"}) {
    write("kind", text);
    EXPECT_FALSE(found("kind")) << text;
  }
  write("kind", "kind\n1\n" + std::string(100'000, 'k') + '\n');
  EXPECT_FALSE(found("kind"));
}

TEST_F(SeedFiles, NamesOfSeveralLinesAreNotWritten) {
  Seeds ours{folder_.path()};
  ours.set("kind", {"one\nmore", 1}, true);
  ours.set("two\nlines", {"key", 1}, true);
  EXPECT_FALSE(found("kind"));
  EXPECT_FALSE(found("two\nlines"));
}

ProgramKind kind_of(const std::string& path) {
  const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  EXPECT_TRUE(file) << path;
  return kind_of_program(file.get());
}

TEST(ProgramKind, IsItsDynamicLinkerAndItsLibraries) {
  const ProgramKind kind = kind_of("/proc/self/exe");
  EXPECT_EQ(kind.linker, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_NE(kind.libraries.find(" libc.so.6"), std::string::npos);
  EXPECT_NE(kind.libraries.find(" libstdc++.so.6"), std::string::npos);
}

TEST(ProgramKind, WhatIsNoProgramHasNone) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "file";
  std::ifstream self{"/proc/self/exe", std::ios::binary};
  std::string bytes(4096, '\0');
  self.read(bytes.data(), std::ssize(bytes));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{3}, std::size_t{64}, std::size_t{700}}) {
    std::ofstream{path, std::ios::binary | std::ios::trunc} << bytes.substr(0, size);
    EXPECT_EQ(kind_of(path).libraries, "") << size;
  }
  // Damage each byte of its program headers in turn.
  for (std::size_t at = 0x40; at < 0x400; ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    std::ofstream{path, std::ios::binary | std::ios::trunc} << damaged;
    EXPECT_EQ(kind_of(path).libraries, "") << at;
  }
}

}  // namespace
}  // namespace backtrail::tracee::cache
