// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/insn_cache.hpp"

#include <gtest/gtest.h>

#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::decoder {
namespace {

using namespace literals;
using test::FlatCode;

TEST(InsnCache, DecodesOnce) {
  FlatCode code{0x1000_ta, {0x0f, 0x05, 0x90}};
  InsnCache insns{code};
  EXPECT_EQ(insns.at(0x1000_ta).kind, arch::InsnKind::kSystemCall);
  EXPECT_EQ(insns.at(0x1000_ta).length, 2U);
  EXPECT_EQ(code.reads(), 1);
}

TEST(InsnCache, DoesNotRememberWhatCannotBeRead) {
  FlatCode code{0x1000_ta, {}};
  InsnCache insns{code};
  EXPECT_FALSE(insns.at(0x1000_ta).known());
  code.bytes() = {0x90};
  EXPECT_TRUE(insns.at(0x1000_ta).known());
}

TEST(InsnCache, ForgetsInstructionsThatReachIntoAChange) {
  // The change is in the last byte of the second instruction, with many instructions around it or
  // few.
  for (const std::size_t around : {0U, 1000U}) {
    std::vector<std::uint8_t> bytes{0x90, 0xb8, 0, 0, 0, 0, 0x90};
    bytes.insert(bytes.end(), around, 0x90);
    FlatCode code{0x1000_ta, bytes};
    InsnCache insns{code};
    for (const std::uint64_t at : {0U, 1U, 6U}) (void)insns.at(0x1000_ta + at);
    for (std::uint64_t at = 7; at < bytes.size(); ++at) (void)insns.at(0x1000_ta + at);
    const std::uint64_t generation = insns.generation();
    code.bytes()[1] = 0xe9;
    code.bytes()[5] = 0x10;
    insns.invalidate(0x1005_ta, 0x1006_ta);
    EXPECT_NE(insns.generation(), generation);
    EXPECT_EQ(insns.at(0x1001_ta).kind, arch::InsnKind::kJump);
    const int reads = code.reads();
    (void)insns.at(0x1006_ta);
    EXPECT_EQ(code.reads(), reads);
  }
}

TEST(InsnCache, ForgetsAll) {
  FlatCode code{0x1000_ta, {0x90}};
  InsnCache insns{code};
  (void)insns.at(0x1000_ta);
  const std::uint64_t generation = insns.generation();
  insns.invalidate_all();
  EXPECT_NE(insns.generation(), generation);
  (void)insns.at(0x1000_ta);
  EXPECT_EQ(code.reads(), 2);
}

TEST(InsnCache, TakesAChangeAtTheEndsOfMemory) {
  FlatCode code{0_ta, {0x90}};
  InsnCache insns{code};
  (void)insns.at(0_ta);
  insns.invalidate(0_ta, 1_ta);
  (void)insns.at(0_ta);
  EXPECT_EQ(code.reads(), 2);
  insns.invalidate(0_ta, 0xffff'ffff'ffff'ffff_ta);
  (void)insns.at(0_ta);
  EXPECT_EQ(code.reads(), 3);
}

}  // namespace
}  // namespace backtrail::decoder
