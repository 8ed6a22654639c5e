// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/exit_links.hpp"

#include <array>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using arch::x86::translate::Exit;
using arch::x86::translate::ExitKind;

constexpr TraceeAddr kCode{0x1000'0000};
constexpr TraceeAddr kMiss = kCode + 4;
constexpr TraceeAddr kStart{0x40'1000};

class ExitLinksTest : public testing::Test {
 protected:
  /// Adds an exit whose link is at this code offset, and lists it.
  void add(std::uint32_t link, TraceeAddr to) {
    exits_.add(Exit{.to = to, .link_offset = link - kBlock}, kBlock);
    exits_.list(next_, to);
    links_.point(link, kMiss);
    ++next_;
  }
  static constexpr std::uint32_t kBlock = 0x20;

  std::array<std::uint8_t, 512> code_{};
  CodeLinks links_{code_, kCode};
  ExitLinks exits_{links_};
  std::uint32_t next_ = 0;
};

TEST_F(ExitLinksTest, WaitForTheirSuperblock) {
  add(0x40, kStart);
  add(0x50, kStart + 1);
  add(0x60, kStart);
  EXPECT_EQ(exits_.superblock(kStart), std::nullopt);
  exits_.set_superblock(kStart, 7, kCode + 0x100);
  EXPECT_EQ(exits_.superblock(kStart), 7U);
  EXPECT_EQ(links_.target_of(0x40), 0x100U);
  EXPECT_EQ(links_.target_of(0x50), 4U);
  EXPECT_EQ(links_.target_of(0x60), 0x100U);
}

TEST_F(ExitLinksTest, FollowASuperblockThatIsReplaced) {
  exits_.set_superblock(kStart, 7, kCode + 0x100);
  add(0x40, kStart);
  exits_.set_superblock(kStart, 8, kCode + 0x180);
  EXPECT_EQ(exits_.superblock(kStart), 8U);
  EXPECT_EQ(links_.target_of(0x40), 0x180U);
}

TEST_F(ExitLinksTest, MissWhenTheirSuperblockIsGone) {
  add(0x40, kStart);
  exits_.set_superblock(kStart, 7, kCode + 0x100);
  exits_.remove_superblock(kStart, kMiss);
  EXPECT_EQ(exits_.superblock(kStart), std::nullopt);
  EXPECT_EQ(links_.target_of(0x40), 4U);
}

TEST_F(ExitLinksTest, AreNotTouchedOnceAllIsForgotten) {
  add(0x40, kStart);
  exits_.clear();
  exits_.set_superblock(kStart, 7, kCode + 0x100);
  EXPECT_EQ(links_.target_of(0x40), 4U);
  EXPECT_EQ(exits_.place(0).link(), 0x40U);
}

TEST_F(ExitLinksTest, TellWhereTheyAre) {
  const std::array loaded{ExitPlace::of(0x10, Exit{}), ExitPlace::of(0x18, Exit{})};
  exits_.load(loaded);
  exits_.add(Exit{.kind = ExitKind::kStale, .link_offset = 0}, kBlock);
  exits_.add(Exit{.link_offset = 9}, kBlock);
  EXPECT_TRUE(exits_.is_loaded(1));
  EXPECT_FALSE(exits_.is_loaded(2));
  EXPECT_EQ(exits_.place(1).link(), 0x18U);
  EXPECT_EQ(exits_.place(2).link(), 0U);
  EXPECT_EQ(exits_.place(2).kind(decoder::LoggedExitKind::kContinue), ExitKind::kStale);
  EXPECT_EQ(exits_.place(3).link(), 0x29U);
  EXPECT_EQ(exits_.places().front().size(), 2U);
  exits_.list(3, kStart);
  exits_.set_superblock(kStart, 0, kCode + 0x100);
  EXPECT_EQ(links_.target_of(0x29), 0x100U);
}

}  // namespace
}  // namespace backtrail::tracee::cache
