// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/section_search.hpp"

#include <array>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::array<std::uint8_t, 4> kSignature{0x53, 0x30, 0x05, 0x53};

TEST(SectionSearch, FindsTheSignatureButNotWhereItIsRegistered) {
  std::vector<std::uint8_t> code(100, 0x90);
  EXPECT_FALSE(has_abort_signature(code));
  // mov r10d, signature: an argument of rseq(2).
  code[10] = 0x41;
  code[11] = 0xba;
  std::copy(kSignature.begin(), kSignature.end(), code.begin() + 12);
  EXPECT_FALSE(has_abort_signature(code));
  std::copy(kSignature.begin(), kSignature.end(), code.end() - 4);
  EXPECT_TRUE(has_abort_signature(code));
  code.pop_back();
  EXPECT_FALSE(has_abort_signature(code));
}

TEST(SectionSearch, LooksAtAnyPartOfAFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "code";
  constexpr std::uint64_t kAt = 5000;
  std::vector<char> bytes(10'000, '\x90');
  std::copy(kSignature.begin(), kSignature.end(), bytes.begin() + kAt);
  std::ofstream{path, std::ios::binary}.write(bytes.data(), std::ssize(bytes));
  EXPECT_TRUE(file_has_abort_signature(path, 0, bytes.size()));
  EXPECT_TRUE(file_has_abort_signature(path, 4096, 1 << 20));
  EXPECT_TRUE(file_has_abort_signature(path, kAt, 4));
  EXPECT_TRUE(file_has_abort_signature(path, kAt - 3, 7));
  EXPECT_FALSE(file_has_abort_signature(path, kAt - 3, 6));
  EXPECT_FALSE(file_has_abort_signature(path, 0, kAt));
  EXPECT_FALSE(file_has_abort_signature(path, kAt + 1, 4000));
  EXPECT_FALSE(file_has_abort_signature(path, 20'000, 10));
  // A file that cannot be read counts as having sections.
  EXPECT_TRUE(file_has_abort_signature(path + ".none", 0, 10));
}

}  // namespace
}  // namespace backtrail::tracee::cache
