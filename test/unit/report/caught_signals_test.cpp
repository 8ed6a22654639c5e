// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/caught_signals.hpp"

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

TEST(CaughtSignals, AreReadInOrder) {
  const auto caught =
      parse_caught("11 555555554000 0b00000000000000010000 6 7f0000001234 06", arch::Isa::kAmd64);
  ASSERT_EQ(caught.size(), 2U);
  EXPECT_EQ(caught[0].signal, 11);
  EXPECT_EQ(caught[0].pc, TraceeAddr{0x555555554000});
  EXPECT_EQ(caught[0].info[0], 11);
  EXPECT_EQ(caught[0].info[8], 1);
  EXPECT_EQ(caught[1].signal, 6);
  EXPECT_EQ(caught[1].info[0], 6);
}

TEST(CaughtSignals, NonsenseIsPassedOver) {
  for (const char* text : {"", " ", "11", "11 5", "x 5 0b", "11 y 0b", "11 5 0", "11 5 0g"}) {
    const auto caught = parse_caught(text, arch::Isa::kAmd64);
    EXPECT_LE(caught.size(), std::string_view{text} == "11 5" ? 1U : 0U) << text;
  }
  EXPECT_TRUE(parse_caught("11 5 " + std::string(1000, '0'), arch::Isa::kAmd64).empty());
  EXPECT_EQ(parse_caught("11 5 0b 6", arch::Isa::kAmd64).size(), 1U);
}

}  // namespace
}  // namespace backtrail::decoder
