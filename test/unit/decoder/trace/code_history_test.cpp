// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/code_history.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

ValueFact bytes(std::uint64_t record, TraceeAddr at, std::uint64_t value, unsigned count) {
  return {record, at, value, static_cast<arch::ValueKind>(arch::kCodeKind + count)};
}

ValueFact unknown(std::uint64_t record, TraceeAddr at, std::uint64_t count) {
  return {record, at, count, arch::kCodeKind};
}

class CodeHistoryOf : public testing::Test {
 protected:
  /// Returns the first byte of the operand of the instruction; nullopt if it is not told.
  static std::optional<int> operand(CodeHistory& code, std::uint64_t record, TraceeAddr pc) {
    const ExecutedInsn* insn = code.at(record, pc);
    if (insn == nullptr) return std::nullopt;
    return insn->bytes[1];
  }
};

// mov $VALUE, %al: b0 VALUE
TEST_F(CodeHistoryOf, WhatWasToldHoldsUntilSomethingElseIsTold) {
  const std::vector<ValueFact> facts{bytes(3, 0x1002_ta, 0x01b0, 2),
                                     {5, 0x1002_ta, 7, 0},
                                     bytes(8, 0x1003_ta, 0x02, 1),
                                     unknown(11, 0x1000_ta, 3),
                                     bytes(12, 0x1002_ta, 0x03b0, 2)};
  CodeHistory code{arch::Isa::kAmd64, facts};
  EXPECT_EQ(operand(code, 2, 0x1002_ta), std::nullopt);
  EXPECT_EQ(operand(code, 3, 0x1002_ta), 1);
  EXPECT_EQ(operand(code, 7, 0x1002_ta), 1);
  EXPECT_EQ(operand(code, 8, 0x1002_ta), 2);
  EXPECT_EQ(operand(code, 10, 0x1002_ta), 2);
  EXPECT_EQ(operand(code, 11, 0x1002_ta), std::nullopt);
  EXPECT_EQ(operand(code, 12, 0x1002_ta), 3);
  EXPECT_EQ(operand(code, 100, 0x1002_ta), 3);
}

TEST_F(CodeHistoryOf, OfTwoFactsOfOneRecordTheLastOneCounts) {
  const std::vector<ValueFact> facts{bytes(3, 0x1002_ta, 0x01b0, 2),
                                     bytes(3, 0x1002_ta, 0x02b0, 2)};
  CodeHistory code{arch::Isa::kAmd64, facts};
  EXPECT_EQ(operand(code, 3, 0x1002_ta), 2);
}

TEST_F(CodeHistoryOf, AnInstructionMayBeToldInParts) {
  // mov $0x55667788, %eax
  const std::vector<ValueFact> facts{bytes(1, 0x1006_ta, 0x88b8, 2),
                                     bytes(1, 0x1008_ta, 0x556677, 3)};
  CodeHistory code{arch::Isa::kAmd64, facts};
  const ExecutedInsn* insn = code.at(1, 0x1006_ta);
  ASSERT_NE(insn, nullptr);
  EXPECT_EQ(insn->facts.length, 5);
  const std::vector<std::uint8_t> expected{0xb8, 0x88, 0x77, 0x66, 0x55};
  EXPECT_TRUE(std::ranges::equal(insn->view(), expected));
  // An instruction that did not change is the same object.
  EXPECT_EQ(code.at(2, 0x1006_ta), insn);
}

TEST_F(CodeHistoryOf, APartOfAnInstructionTellsNothing) {
  const std::vector<ValueFact> facts{bytes(1, 0x1006_ta, 0x88b8, 2), bytes(1, 0x100a_ta, 0x55, 1)};
  CodeHistory code{arch::Isa::kAmd64, facts};
  EXPECT_EQ(code.at(1, 0x1006_ta), nullptr);
}

TEST_F(CodeHistoryOf, AllCodeMayBecomeUnknown) {
  const std::vector<ValueFact> facts{bytes(1, 0x1000_ta, 0x01b0, 2), bytes(1, 0x9000_ta, 0x01b0, 2),
                                     unknown(4, 0_ta, ~std::uint64_t{0}),
                                     bytes(4, 0x9000_ta, 0x02b0, 2)};
  CodeHistory code{arch::Isa::kAmd64, facts};
  EXPECT_EQ(operand(code, 3, 0x1000_ta), 1);
  EXPECT_EQ(operand(code, 4, 0x1000_ta), std::nullopt);
  EXPECT_EQ(operand(code, 4, 0x9000_ta), 2);
}

/// As a damaged file may tell.
TEST_F(CodeHistoryOf, NoFactLeadsOutOfMemory) {
  const std::vector<ValueFact> facts{bytes(1, 0x1007_ta, ~std::uint64_t{0}, 8),
                                     bytes(1, TraceeAddr{~std::uint64_t{0}}, 0xb0, 8),
                                     unknown(2, TraceeAddr{~std::uint64_t{0}}, ~std::uint64_t{0})};
  CodeHistory code{arch::Isa::kAmd64, facts};
  EXPECT_EQ(code.at(1, TraceeAddr{~std::uint64_t{0}}), nullptr);
  EXPECT_EQ(code.at(3, 0x1007_ta), nullptr);
}

}  // namespace
}  // namespace backtrail::decoder
