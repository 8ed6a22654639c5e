// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/followed_path.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace backtrail::arch::x86::translate {
namespace {

constexpr TraceeAddr kStart{0x1000};

/// The way through 64 bytes of code: NOPs, unless a test puts something else there.
class FollowedPathTest : public testing::Test {
 protected:
  FollowedPathTest() : code_(64, 0x90) {
    source_.read = [this](TraceeAddr at, std::span<std::uint8_t> out) -> std::size_t {
      ++reads_;
      const auto there = rest(at);
      const std::size_t count = std::min(out.size(), there.size());
      std::copy_n(there.begin(), count, out.begin());
      return count;
    };
    source_.stop_before = [this](TraceeAddr at) {
      ++questions_;
      return at == stop_;
    };
    source_.section_at = [this](TraceeAddr at) {
      ++questions_;
      return at == section_;
    };
  }
  [[nodiscard]] std::span<const std::uint8_t> rest(TraceeAddr at) const {
    const std::uint64_t offset = at - kStart;
    return offset < code_.size() ? std::span{code_}.subspan(offset) : std::span{code_}.first(0);
  }
  void put(std::size_t at, std::initializer_list<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), code_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::vector<std::uint8_t> code_;
  TraceeAddr stop_;
  TraceeAddr section_;
  int reads_ = 0;
  int questions_ = 0;
  CodeSource source_;
  TranslateOptions options_{.address = TraceeAddr{0x5000'0000}, .table = {}, .miss = {}};
  BlockWriter writer_{kStart, options_};
  SideExits side_exits_{writer_, options_};
};

TEST_F(FollowedPathTest, AsksAboutEachInstruction) {
  stop_ = kStart + 8;
  section_ = kStart + 4;
  const FollowedPath path{source_, options_, writer_, side_exits_};
  EXPECT_FALSE(path.must_stop_before(kStart + 7));
  EXPECT_TRUE(path.must_stop_before(kStart + 8));
  EXPECT_FALSE(path.may_follow(kStart + 8));
  EXPECT_EQ(path.examine(kStart + 2).kind, InsnClass::kCopy);
  EXPECT_EQ(path.examine(kStart + 3).reason, UntranslatableReason::kSection);
}

TEST_F(FollowedPathTest, AsksNothingWhereNothingDisturbs) {
  source_.undisturbed = [](TraceeAddr) { return std::pair{kStart, kStart + 8}; };
  stop_ = kStart + 8;
  const FollowedPath path{source_, options_, writer_, side_exits_};
  EXPECT_FALSE(path.must_stop_before(kStart + 7));
  EXPECT_TRUE(path.may_follow(kStart + 6));
  EXPECT_EQ(path.examine(kStart + 6).kind, InsnClass::kCopy);
  EXPECT_EQ(questions_, 0);
  EXPECT_TRUE(path.must_stop_before(kStart + 8)) << "the range ends before it";
}

TEST_F(FollowedPathTest, AsksAboutEachInstructionIfThatIsUnknown) {
  int asked = 0;
  source_.undisturbed = [&](TraceeAddr) {
    ++asked;
    return std::pair<TraceeAddr, TraceeAddr>{};
  };
  stop_ = kStart + 1;
  const FollowedPath path{source_, options_, writer_, side_exits_};
  EXPECT_FALSE(path.must_stop_before(kStart));
  EXPECT_TRUE(path.must_stop_before(kStart + 1));
  EXPECT_EQ(asked, 1);
}

TEST_F(FollowedPathTest, LearnsOfSectionsThatAnInstructionNames) {
  // lea rax, [rip]: names its next instruction; a section begins at the one after that.
  put(0, {0x48, 0x8d, 0x05, 0, 0, 0, 0});
  bool is_known = false;
  source_.named = [&](TraceeAddr insn, TraceeAddr at) {
    EXPECT_EQ(insn, kStart);
    EXPECT_EQ(at, kStart + 7);
    is_known = true;
    section_ = kStart + 8;
    return true;
  };
  source_.undisturbed = [&](TraceeAddr) {
    return is_known ? std::pair<TraceeAddr, TraceeAddr>{} : std::pair{kStart, kStart + 64};
  };
  const FollowedPath path{source_, options_, writer_, side_exits_};
  EXPECT_EQ(path.examine(kStart + 7).kind, InsnClass::kCopy) << "the section is not known yet";
  (void)path.examine(kStart);
  EXPECT_EQ(path.examine(kStart + 7).reason, UntranslatableReason::kSection);
}

TEST_F(FollowedPathTest, CopiesBytesOnlyWhereThereIsNoView) {
  put(0, {0x50, 0x51});
  put(40, {0x52});
  int views = 0;
  source_.view = [&](TraceeAddr at) {
    ++views;
    const auto there = rest(at);
    // A page ends after 32 bytes.
    return there.first(
        std::min<std::size_t>(there.size(), kStart + 32 > at ? 32 - (at - kStart) : 64));
  };
  const FollowedPath path{source_, options_, writer_, side_exits_};
  EXPECT_EQ(path.examine(kStart).bytes[0], 0x50);
  EXPECT_EQ(path.examine(kStart + 1).bytes[0], 0x51);
  EXPECT_EQ(path.examine(kStart + 16).bytes[0], 0x90);
  EXPECT_EQ(views, 1);
  EXPECT_EQ(reads_, 0);
  EXPECT_EQ(path.examine(kStart + 20).bytes[0], 0x90) << "it may run on into the next page";
  EXPECT_EQ(reads_, 1);
  EXPECT_EQ(path.examine(kStart + 40).bytes[0], 0x52);
  EXPECT_EQ(reads_, 1);
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
