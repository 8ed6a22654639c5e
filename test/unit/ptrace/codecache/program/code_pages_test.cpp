// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/code_pages.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

constexpr TraceeAddr kPage{0x40'0000};

class CodePagesTest : public testing::Test {
 protected:
  std::uint8_t byte_ = 1;
  std::size_t readable_ = kPageBytes;
  int reads_ = 0;
  CodePages pages_{[this](TraceeAddr, std::span<std::uint8_t> out) {
    ++reads_;
    std::fill(out.begin(), out.end(), byte_);
    return readable_;
  }};
};

TEST_F(CodePagesTest, ReadEachPageOnce) {
  std::array<std::uint8_t, 8> out{};
  EXPECT_EQ(pages_.read(kPage, out), out.size());
  EXPECT_EQ(pages_.read(kPage + 100, out), out.size());
  EXPECT_EQ(reads_, 1);
  EXPECT_EQ(out[7], 1);
  EXPECT_EQ(pages_.read(kPage + kPageBytes - 1, out), out.size());
  EXPECT_EQ(reads_, 2);
}

TEST_F(CodePagesTest, ShowBytesUpToTheEndOfTheirPage) {
  EXPECT_EQ(pages_.view(kPage + 16).size(), kPageBytes - 16);
  EXPECT_EQ(pages_.view(kPage + 17).front(), 1);
  EXPECT_EQ(reads_, 1);
}

TEST_F(CodePagesTest, ShowNothingThatCannotBeRead) {
  readable_ = 32;
  EXPECT_EQ(pages_.view(kPage + 16).size(), 16U);
  EXPECT_TRUE(pages_.view(kPage + 48).empty());
}

TEST_F(CodePagesTest, AreReadAgainOnceTheyAreForgotten) {
  (void)pages_.view(kPage);
  byte_ = 2;
  EXPECT_EQ(pages_.view(kPage).front(), 1);
  pages_.forget(kPage);
  EXPECT_EQ(pages_.view(kPage).front(), 2);
  byte_ = 3;
  pages_.forget();
  EXPECT_EQ(pages_.view(kPage).front(), 3);
}

}  // namespace
}  // namespace backtrail::tracee::cache
