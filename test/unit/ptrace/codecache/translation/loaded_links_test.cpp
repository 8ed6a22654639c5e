// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/loaded_links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/ptrace/codecache/translation/loaded_example.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::x86::translate;
using testing::ElementsAre;
using testing::IsEmpty;
using Example = LoadedExample;

constexpr TraceeAddr kCode{0x1000'0000};
constexpr std::uint64_t kMiss = 0x10;

class LoadedLinksTest : public testing::Test {
 protected:
  LoadedLinksTest() {
    superblocks_.load(kept_);
    loaded_.load(kept_, std::make_shared<decoder::ExitTable>(kept_->exits(kept_)));
    for (const std::uint32_t link : Example::kLinks) links_.point(link, kCode + kMiss);
  }
  /// Adds a superblock of this process, which need not make sense, and returns its code offset.
  std::uint64_t add(TraceeAddr start) {
    const std::array pc_map{translate::PcMapEntry{.pc = start}};
    const std::array ranges{translate::Branch{start, start + 1}};
    const auto index = superblocks_.add(
        {.start = start, .offset = offset_, .logged = offset_, .size = 48}, pc_map, ranges);
    offset_ += 64;
    return superblocks_[index].offset;
  }
  [[nodiscard]] std::uint64_t target_of_exit(std::size_t exit) const {
    return links_.target_of(Example::kLinks.at(exit));
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(0x1000);
  CodeLinks links_{bytes_, kCode};
  Superblocks superblocks_;
  LoadedLinks loaded_{links_, superblocks_, kCode + kMiss};
  std::shared_ptr<const PersistentCode> kept_ = Example::make();
  std::uint32_t offset_ = 0x400;
};

TEST_F(LoadedLinksTest, RememberLinksFromLoadedCode) {
  const auto own = add(Example::kNowhere);
  loaded_.lead(Example::kLinks[2], own);
  EXPECT_EQ(target_of_exit(2), own);
  EXPECT_THAT(loaded_.leading_to(0), ElementsAre(Example::kLinks[2]));
  EXPECT_THAT(loaded_.leading_to(1), IsEmpty());
  loaded_.release(0);
  EXPECT_EQ(target_of_exit(2), kMiss);
  EXPECT_THAT(loaded_.leading_to(0), IsEmpty());
}

TEST_F(LoadedLinksTest, FollowASuperblockThatIsReplaced) {
  loaded_.lead(Example::kLinks[2], add(Example::kNowhere));
  const auto newer = add(Example::kNowhere);
  loaded_.move(0, 1);
  EXPECT_EQ(target_of_exit(2), newer);
  EXPECT_THAT(loaded_.leading_to(0), IsEmpty());
  EXPECT_THAT(loaded_.leading_to(1), ElementsAre(Example::kLinks[2]));
}

TEST_F(LoadedLinksTest, LinksAmongOwnCodeAreNotTheirBusiness) {
  const auto first = add(Example::kNowhere);
  const auto second = add(Example::kNowhere + 8);
  loaded_.lead(static_cast<std::uint32_t>(first) + 8, second);
  EXPECT_EQ(links_.target_of(first + 8), second);
  EXPECT_THAT(loaded_.leading_to(1), IsEmpty());
}

TEST_F(LoadedLinksTest, LinksToAModuleThatGoesAreReleased) {
  const auto link = static_cast<std::uint32_t>(add(Example::kNowhere)) + 8;
  loaded_.lead(link, Example::kCodeOfC);
  loaded_.lead(Example::kLinks[1], Example::kCodeOfC);
  loaded_.lead(Example::kLinks[0], Example::kCodeOfB);
  loaded_.release_modules({Example::kSecond});
  EXPECT_EQ(links_.target_of(link), kMiss);
  EXPECT_EQ(target_of_exit(1), kMiss);
  EXPECT_EQ(target_of_exit(0), Example::kCodeOfB);
  loaded_.release_modules({Example::kFirst});
  EXPECT_EQ(target_of_exit(0), kMiss);
}

TEST_F(LoadedLinksTest, LinksWithinAModuleAreRestored) {
  loaded_.restore(Example::kFirst);
  EXPECT_EQ(target_of_exit(0), Example::kCodeOfB);
  // Exit 1 leads to another module.
  EXPECT_EQ(target_of_exit(1), kMiss);
  loaded_.restore(Example::kSecond);
  EXPECT_EQ(target_of_exit(2), kMiss);
}

TEST_F(LoadedLinksTest, AllLinksToAnAddressAreRedirectedAtOnce) {
  // Often enough for both ways to find them.
  for (std::uint32_t i = 0; i < 6; ++i) {
    const auto own = add(Example::kC);
    loaded_.redirect(Example::kC, i);
    EXPECT_NE(target_of_exit(1), own);
    loaded_.redirect_all();
    EXPECT_EQ(target_of_exit(1), own);
    EXPECT_EQ(target_of_exit(0), kMiss);
    EXPECT_THAT(loaded_.leading_to(i), ElementsAre(Example::kLinks[1]));
  }
}

TEST_F(LoadedLinksTest, AreForgotten) {
  const auto own = add(Example::kNowhere);
  loaded_.lead(Example::kLinks[2], own);
  loaded_.redirect(Example::kC, 0);
  loaded_.clear();
  loaded_.release(0);
  loaded_.redirect_all();
  EXPECT_EQ(target_of_exit(2), own);
  EXPECT_EQ(target_of_exit(1), kMiss);
}

}  // namespace
}  // namespace backtrail::tracee::cache
