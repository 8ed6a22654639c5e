// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/constant_memory.hpp"

#include <gtest/gtest.h>

#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used
using arch::kBecomesConstantKind;
using arch::kConstantKind;
using arch::kVariableKind;

TEST(ConstantMemory, WithoutFactsNothingIsTold) {
  ConstantMemory memory;
  EXPECT_FALSE(memory.is_told());
  memory.take({3, 0x1000_ta, 7, arch::kCodeKind});
  EXPECT_FALSE(memory.is_told());
  EXPECT_EQ(memory.bytes_at(9, 0x1000_ta, 1), 0U);
}

TEST(ConstantMemory, ARangeIsConstantFromItsRecordOn) {
  ConstantMemory memory;
  memory.take({3, 0x1000_ta, 0x1000, kConstantKind});
  memory.take({5, 0x2000_ta, 0x1000, kBecomesConstantKind});
  EXPECT_TRUE(memory.is_told());
  EXPECT_EQ(memory.bytes_at(2, 0x1000_ta, 8), 0U);
  EXPECT_EQ(memory.bytes_at(3, 0x1000_ta, 8), 8U);
  EXPECT_EQ(memory.bytes_at(5, 0x2000_ta, 8), 0U) << "it may have been another at first";
  EXPECT_EQ(memory.bytes_at(6, 0x2000_ta, 8), 8U);
  EXPECT_EQ(memory.bytes_at(6, 0x0fff_ta, 8), 0U);
  EXPECT_EQ(memory.bytes_at(6, 0x3000_ta, 8), 0U);
}

TEST(ConstantMemory, NeighboursAreReadTogether) {
  ConstantMemory memory;
  memory.take({3, 0x1000_ta, 0x1000, kConstantKind});
  memory.take({5, 0x2000_ta, 0x1000, kConstantKind});
  memory.take({5, 0x4000_ta, 0x1000, kConstantKind});
  EXPECT_EQ(memory.bytes_at(4, 0x1ffc_ta, 8), 4U);
  EXPECT_EQ(memory.bytes_at(5, 0x1ffc_ta, 8), 8U);
  EXPECT_EQ(memory.bytes_at(5, 0x2ffc_ta, 8), 4U);
}

TEST(ConstantMemory, WhatMayChangeIsNotConstantBefore) {
  ConstantMemory memory;
  memory.take({3, 0x1000_ta, 0x3000, kConstantKind});
  memory.take({7, 0x2000_ta, 0x1000, kVariableKind});
  EXPECT_EQ(memory.bytes_at(9, 0x1ffc_ta, 8), 4U);
  EXPECT_EQ(memory.bytes_at(9, 0x2000_ta, 8), 0U);
  EXPECT_EQ(memory.bytes_at(3, 0x3000_ta, 8), 8U);
  memory.take({8, 0x1000_ta, 0x3000, kConstantKind});
  EXPECT_EQ(memory.bytes_at(3, 0x1ffc_ta, 8), 4U) << "the rest has been constant for longer";
  EXPECT_EQ(memory.bytes_at(8, 0x1ffc_ta, 8), 8U);
  memory.take({9, 0x0_ta, ~std::uint64_t{0}, kVariableKind});
  EXPECT_EQ(memory.bytes_at(10, 0x1000_ta, 8), 0U);
  EXPECT_TRUE(memory.is_told());
}

TEST(ConstantMemory, ItsFactsTellTheSame) {
  ConstantMemory memory;
  memory.take({3, 0x5000_ta, 0x1000, kConstantKind});
  memory.take({5, 0x2000_ta, 0x3000, kBecomesConstantKind});
  memory.take({7, 0x3000_ta, 0x1000, kVariableKind});
  const std::vector<ValueFact> facts = memory.facts();
  EXPECT_EQ(facts, (std::vector<ValueFact>{{3, 0x5000_ta, 0x1000, kConstantKind},
                                           {5, 0x2000_ta, 0x1000, kBecomesConstantKind},
                                           {5, 0x4000_ta, 0x1000, kBecomesConstantKind}}));
  memory.take({9, 0x0_ta, ~std::uint64_t{0}, kVariableKind});
  ConstantMemory same;
  for (const ValueFact& fact : memory.facts()) same.take(fact);
  EXPECT_TRUE(same.is_told());
}

TEST(ConstantMemory, ThereAreNotTooManyRanges) {
  ConstantMemory memory;
  for (std::uint64_t i = 0; i <= ConstantMemory::kMost; ++i) {
    memory.take({i, TraceeAddr{0x1000 + 0x2000 * i}, 0x1000, kConstantKind});
  }
  EXPECT_EQ(memory.facts().size(), ConstantMemory::kMost);
}

}  // namespace
}  // namespace backtrail::decoder
