// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/program_view.hpp"

#include <array>
#include <bit>

#include <gtest/gtest.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

constexpr std::uint8_t kNop = 0x90;
constexpr std::uint8_t kRet = 0xc3;
constexpr std::uint8_t kInt3 = 0xcc;

/// The view of this process's own memory, of which `code_` is the code.
class ProgramViewTest : public testing::Test {
 protected:
  void SetUp() override {
    code_.fill(kNop);
    code_.back() = kRet;
  }
  [[nodiscard]] TraceeAddr at(std::size_t offset) const {
    return TraceeAddr{std::bit_cast<std::uint64_t>(code_.data())} + offset;
  }
  [[nodiscard]] std::uint8_t in_memory(std::size_t offset) const {
    volatile const std::uint8_t* const byte = &code_[offset];
    return *byte;
  }

  std::array<std::uint8_t, 16> code_{};
  ProgramView view_{*ProcessMemory::open(getpid())};
};

TEST_F(ProgramViewTest, ShowsNoBreakpoints) {
  ASSERT_TRUE(view_.breakpoints().insert(at(3)));
  EXPECT_EQ(in_memory(3), kInt3);
  std::array<std::uint8_t, 16> read{};
  EXPECT_EQ(view_.read_code(at(0), read), read.size());
  EXPECT_EQ(read[3], kNop);
  EXPECT_EQ(view_.insn_bytes(at(3)).front(), kNop);
  ASSERT_TRUE(view_.write(at(3), std::array{kRet}));
  EXPECT_EQ(in_memory(3), kInt3) << "the breakpoint stays";
  ASSERT_TRUE(view_.breakpoints().remove(at(3)));
  EXPECT_EQ(in_memory(3), kRet);
}

TEST_F(ProgramViewTest, ReadsAnInstructionOnceUntilToldOrWritten) {
  EXPECT_EQ(view_.insn_bytes(at(0)).front(), kNop);
  code_[0] = kRet;
  EXPECT_EQ(view_.insn_bytes(at(0)).front(), kNop);
  view_.forget_insn_bytes();
  EXPECT_EQ(view_.insn_bytes(at(0)).front(), kRet);
  ASSERT_TRUE(view_.write(at(0), std::array{kNop}));
  EXPECT_EQ(view_.insn_bytes(at(0)).front(), kNop);
}

TEST_F(ProgramViewTest, ForgetsTheProgramBeforeAnExec) {
  ASSERT_TRUE(view_.breakpoints().insert(at(3)));
  EXPECT_EQ(view_.insns().at(at(15)).kind, arch::InsnKind::kReturn);
  code_[15] = kNop;
  view_.forget_program();
  EXPECT_TRUE(view_.breakpoints().empty());
  EXPECT_EQ(view_.insns().at(at(15)).kind, arch::InsnKind::kOther);
}

TEST_F(ProgramViewTest, InheritsBreakpointsThatAreInItsMemory) {
  ASSERT_TRUE(view_.breakpoints().insert(at(3)));
  ProgramView child{*ProcessMemory::open(getpid())};
  child.inherit_from(view_);
  ASSERT_TRUE(child.breakpoints().remove(at(3)));
  EXPECT_EQ(in_memory(3), kNop);
}

}  // namespace
}  // namespace backtrail::tracee
