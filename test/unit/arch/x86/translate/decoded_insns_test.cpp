// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/decoded_insns.hpp"

#include <array>

#include <gtest/gtest.h>

namespace backtrail::arch::x86::translate {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

constexpr std::array<std::uint8_t, 5> kCall{0xe8, 0x10, 0, 0, 0};
constexpr std::array<std::uint8_t, 5> kMove{0xb8, 0x10, 0, 0, 0};

TEST(DecodedInsns, AreRememberedByAddressAndBytes) {
  DecodedInsns insns;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(insns.decode(0x1000_ta, kCall).target, 0x1015_ta);
    // Uses the slot of the first address.
    EXPECT_EQ(insns.decode(0x3010_ta, kCall).target, 0x3025_ta);
  }
  EXPECT_EQ(insns.decode(0x1000_ta, kMove).sets_eax_to, 0x10U);
  EXPECT_EQ(insns.decode(0x1000_ta, kCall).kind, InsnClass::kCall);
}

TEST(DecodedInsns, WhatIsCutOffIsNotTakenForWhole) {
  DecodedInsns insns;
  EXPECT_EQ(insns.decode(0x1000_ta, kCall).kind, InsnClass::kCall);
  EXPECT_EQ(insns.decode(0x1000_ta, std::span{kCall}.first(4)).reason,
            UntranslatableReason::kUndecodable);
  EXPECT_EQ(insns.decode(0x1000_ta, {}).reason, UntranslatableReason::kUnreadable);
  EXPECT_EQ(insns.decode(0_ta, {}).reason, UntranslatableReason::kUnreadable);
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
