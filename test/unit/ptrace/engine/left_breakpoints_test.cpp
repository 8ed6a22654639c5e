// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/left_breakpoints.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "../fake_memory.hpp"
#include "arch/cpu/program_abi.hpp"

namespace backtrail::tracee {
namespace {

constexpr TraceeAddr kBase{0x1000};
constexpr TraceeAddr kAt{0x1002};
const std::vector<std::uint8_t> program{1, 2, 3, 4};

TEST(LeftBreakpoints, AreLiftedFromAChild) {
  FakeMemory parent{kBase, program};
  BreakpointTable table{parent};
  ASSERT_TRUE(table.insert(kAt));
  FakeMemory child{parent};
  ASSERT_EQ(child.at(kAt), arch::cpu::kInt3);
  LeftBreakpoints left;
  left.note(table);
  left.lift_from(child);
  EXPECT_EQ(child.at(kAt), 3);
}

TEST(LeftBreakpoints, ChangeNothingElse) {
  FakeMemory parent{kBase, program};
  BreakpointTable table{parent};
  ASSERT_TRUE(table.insert(kAt));
  FakeMemory child{kBase, {5, 6, 7, 8}};
  LeftBreakpoints left;
  left.note(table);
  left.lift_from(child);
  EXPECT_EQ(child.at(kAt), 7);
}

TEST(LeftBreakpoints, OfTwoProgramsTheYoungestCounts) {
  LeftBreakpoints left;
  FakeMemory child{kBase, program};
  for (const std::uint8_t byte : {std::uint8_t{8}, std::uint8_t{9}}) {
    FakeMemory parent{kBase, {byte, byte, byte, byte}};
    BreakpointTable table{parent};
    ASSERT_TRUE(table.insert(kAt));
    left.note(table);
  }
  child.set(kAt, arch::cpu::kInt3);
  left.lift_from(child);
  EXPECT_EQ(child.at(kAt), 9);
}

}  // namespace
}  // namespace backtrail::tracee
