// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/code_links.hpp"

#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

constexpr TraceeAddr kCode{0x1234'0000};

class CodeLinksTest : public testing::Test {
 protected:
  [[nodiscard]] std::int32_t stored(std::uint64_t offset) const {
    std::int32_t value = 0;
    std::memcpy(&value, &code_.at(offset), sizeof value);
    return value;
  }

  std::array<std::uint8_t, 256> code_{};
  CodeLinks links_{code_, kCode};
};

TEST_F(CodeLinksTest, CountsFromTheEndOfTheLink) {
  links_.point(16, kCode + 20);
  EXPECT_EQ(stored(16), 0);
  links_.point(16, kCode + 120);
  EXPECT_EQ(stored(16), 100);
  EXPECT_EQ(links_.target_of(16), 120U);
  links_.point(64, kCode);
  EXPECT_EQ(stored(64), -68);
  EXPECT_EQ(links_.target_of(64), 0U);
}

TEST_F(CodeLinksTest, LeadsOutOfTheCodeInBothDirections) {
  EXPECT_EQ(links_.distance_to(0, kCode + 0x7000'0000), 0x6fff'fffcU);
  EXPECT_EQ(links_.distance_to(4, TraceeAddr{0}),
            static_cast<std::uint32_t>(-(std::int64_t{0x1234'0000} + 8)));
}

TEST_F(CodeLinksTest, ChangesFourBytesAlone) {
  code_.fill(0xee);
  links_.store(33, 0x0403'0201);
  EXPECT_EQ(code_[32], 0xee);
  EXPECT_EQ(code_[33], 1);
  EXPECT_EQ(code_[36], 4);
  EXPECT_EQ(code_[37], 0xee);
  EXPECT_EQ(links_.load(33), 0x0403'0201U);
}

TEST_F(CodeLinksTest, KnowsAddressesByOffsetAndBack) {
  EXPECT_EQ(links_.address_of(8), kCode + 8);
  EXPECT_EQ(links_.offset_of(kCode + 8), 8U);
}

TEST_F(CodeLinksTest, NotesWhatWasChangedInSavedCode) {
  links_.store(16, 1);
  EXPECT_EQ(links_.changes(), std::vector<std::uint32_t>{});
  links_.note_changes_before(64);
  links_.store(32, 1);
  links_.store(64, 1);
  links_.point(16, kCode);
  EXPECT_EQ(links_.changes(), (std::vector<std::uint32_t>{32, 16}));
}

TEST_F(CodeLinksTest, NotesNothingMoreOnceThereIsTooMuch) {
  links_.note_changes_before(64);
  for (std::size_t i = 0; i < CodeLinks::kMostChanges; ++i) links_.store(16, 1);
  EXPECT_TRUE(links_.changes());
  links_.store(16, 1);
  EXPECT_FALSE(links_.changes());
}

}  // namespace
}  // namespace backtrail::tracee::cache
