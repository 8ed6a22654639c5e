// SPDX-License-Identifier: Apache-2.0
// Location expressions over registers and memory that are known in part.
#include <map>

#include <dwarf.h>
#include <gtest/gtest.h>

#include "decoder/variables/expression_stack.hpp"
#include "decoder/variables/location.hpp"
#include "fake_frame.hpp"

namespace backtrail::decoder {
namespace {

using Ops = std::vector<Dwarf_Op>;
using Kind = LocationPiece::Kind;

class Expression : public ::testing::Test {
 protected:
  Location at(const Ops& ops, std::uint64_t work = 1000) {
    WorkLimit limit{work};
    return evaluate_location(ops, nullptr, context(limit));
  }
  std::optional<std::uint64_t> number(const Ops& ops) {
    WorkLimit limit{1000};
    return evaluate_number(ops, std::nullopt, context(limit));
  }
  ExpressionContext context(WorkLimit& limit) {
    return {.state = state,
            .bias = 0x1000,
            .cfa = [] { return std::optional<std::uint64_t>{0x5000}; },
            .frame_base = [] { return std::optional<std::uint64_t>{0x4ff0}; },
            .work = limit};
  }
  test::FakeFrame state;
};

TEST_F(Expression, AddressesAndRegistersAreLocations) {
  state.set(3, 0x700);
  const Location file = at({{DW_OP_addr, 0x20, 0, 0}});
  ASSERT_EQ(file.size(), 1U);
  EXPECT_EQ(file.front().value, 0x1020U);
  EXPECT_EQ(at({{DW_OP_fbreg, static_cast<Dwarf_Word>(-16), 0, 0}}).front().value, 0x4fe0U);
  EXPECT_EQ(at({{DW_OP_breg3, 8, 0, 0}}).front().value, 0x708U);
  EXPECT_EQ(at({{DW_OP_reg3, 0, 0, 0}}).front().kind, Kind::kRegister);
}

TEST_F(Expression, AnythingUnknownMakesTheLocationUnknown) {
  state.set_bits(3, 0x700, 0xfff);
  EXPECT_TRUE(at({{DW_OP_breg3, 8, 0, 0}}).empty());
  EXPECT_TRUE(at({{DW_OP_addr, 0x20, 0, 0}, {DW_OP_deref, 0, 0, 9}}).empty());
  EXPECT_TRUE(at({{DW_OP_push_object_address, 0, 0, 0}}).empty());
  EXPECT_TRUE(at({{DW_OP_plus, 0, 0, 0}}).empty());
  EXPECT_TRUE(at({}).empty());
}

TEST_F(Expression, ArithmeticIsThatOfTheStandard) {
  const auto two = [&](unsigned atom, std::uint64_t a, std::uint64_t b) {
    return number({{DW_OP_constu, a, 0, 0},
                   {DW_OP_constu, b, 0, 2},
                   {static_cast<std::uint8_t>(atom), 0, 0, 4}});
  };
  const auto minus_one = static_cast<std::uint64_t>(-1);
  EXPECT_EQ(two(DW_OP_minus, 5, 7), static_cast<std::uint64_t>(-2));
  EXPECT_EQ(two(DW_OP_div, static_cast<std::uint64_t>(-8), 2), static_cast<std::uint64_t>(-4));
  EXPECT_EQ(two(DW_OP_div, 8, 0), std::nullopt);
  EXPECT_EQ(two(DW_OP_div, 1ULL << 63U, minus_one), 1ULL << 63U);
  EXPECT_EQ(two(DW_OP_mod, 8, 0), std::nullopt);
  EXPECT_EQ(two(DW_OP_shl, 1, 64), 0U);
  EXPECT_EQ(two(DW_OP_shra, minus_one, 200), minus_one);
  EXPECT_EQ(two(DW_OP_lt, minus_one, 0), 1U);
}

TEST_F(Expression, AnEndlessLoopEnds) {
  // skip -3 jumps to itself.
  EXPECT_TRUE(at({{DW_OP_skip, static_cast<Dwarf_Word>(-3), 0, 0}}).empty());
  EXPECT_TRUE(at({{DW_OP_lit1, 0, 0, 0}, {DW_OP_skip, static_cast<Dwarf_Word>(-4), 0, 1}}).empty());
}

TEST_F(Expression, PiecesAreReadWhereTheyAre) {
  state.set_bits(0, 0x1122, 0xffff);
  state.memory_bytes[0x1020] = 0xaa;
  const Location location = at({{DW_OP_reg0, 0, 0, 0},
                                {DW_OP_piece, 2, 0, 1},
                                {DW_OP_addr, 0x20, 0, 3},
                                {DW_OP_piece, 2, 0, 12},
                                {DW_OP_piece, 1, 0, 14}});
  ASSERT_EQ(location.size(), 3U);
  const ObjectBytes object = read_object(location, 5, state);
  EXPECT_EQ(object.known, (std::vector<bool>{true, true, true, false, false}));
  EXPECT_EQ(object.bytes[0], 0x22);
  EXPECT_EQ(object.bytes[2], 0xaa);
  EXPECT_FALSE(object.address);
}

TEST_F(Expression, AnUnknownByteHidesOnlyItself) {
  state.memory_bytes[0x1000] = 1;
  state.memory_bytes[0x1002] = 3;
  const ObjectBytes object = read_object(at({{DW_OP_addr, 0, 0, 0}}), 3, state);
  EXPECT_EQ(object.known, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(object.address, 0x1000U);
}

}  // namespace
}  // namespace backtrail::decoder
