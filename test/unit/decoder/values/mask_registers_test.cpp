// SPDX-License-Identifier: Apache-2.0
// Values of the mask registers of AVX-512, and what follows from them.

#include <cstdint>

#include <gtest/gtest.h>

#include "test/unit/decoder/values/program.hpp"

namespace backtrail::decoder::values {
namespace {

const Bytes nop{0x90};
constexpr Slot kK0 = cpu::mask_slot(0);
constexpr Slot kK1 = cpu::mask_slot(1);
constexpr Slot kK2 = cpu::mask_slot(2);
constexpr Slot kK3 = cpu::mask_slot(3);

/// A program at whose end xmm0 and xmm1 are known.
class MaskRegisters : public testing::Test {
 protected:
  MaskRegisters() {
    set_vector(0, {0x0000'0000'0000'00ff, 0x8000'0000'7fff'0201, 0, 0});
    set_vector(1, {0x0000'0000'0000'0001, 0x8000'0000'7fff'0102, 0, 1});
  }
  void set_vector(unsigned reg, std::array<std::uint64_t, cpu::kLanes> lanes) {
    for (unsigned lane = 0; lane < lanes.size(); ++lane) {
      p.regs[cpu::vector_slot(reg, lane)] = cpu::known(lanes.at(lane));
    }
  }
  /// Returns the register after the instruction, from what was before and is not overwritten.
  Known after(const Bytes& insn, Slot slot) {
    Program one;
    one.regs = p.regs;
    one.memory = p.memory;
    one.run(insn);
    one.run(nop);
    return one.solve().reg(1, slot);
  }

  Program p;
};

TEST_F(MaskRegisters, GetABitForEachElementThatIsEqual) {
  const Bytes vpcmpeqb{0x62, 0xf1, 0x7d, 0x28, 0x74, 0xc1};  // %ymm1, %ymm0, %k0
  EXPECT_EQ(after(vpcmpeqb, kK0), cpu::known(0xfeff'fcfe));
}

TEST_F(MaskRegisters, GetABitForEachElementThatIsLessOrGreater) {
  const Bytes above{0x62, 0xf3, 0x7d, 0x08, 0x3e, 0xc9, 0x06};  // vpcmpnleub %xmm1, %xmm0, %k1
  const Bytes less{0x62, 0xf3, 0x7d, 0x08, 0x3f, 0xc9, 0x01};   // vpcmpltb %xmm1, %xmm0, %k1
  const Bytes not_greater{0x62, 0xf3, 0x7d, 0x08, 0x1f, 0xc9, 0x02};  // vpcmpled
  EXPECT_EQ(after(above, kK1), cpu::known(0x0201));
  EXPECT_EQ(after(less, kK1), cpu::known(0x0101));
  EXPECT_EQ(after(not_greater, kK1), cpu::known(0b1010));
}

TEST_F(MaskRegisters, GetNoBitThatAnotherOneExcludes) {
  const Bytes vptestnmb{0x62, 0xf2, 0x7e, 0x0a, 0x26, 0xc8};  // %xmm0, %xmm0, %k1{%k2}
  p.regs[kK2] = cpu::known(0xffff'00fa);
  EXPECT_EQ(after(vptestnmb, kK1), cpu::known(0x00fa));
}

TEST_F(MaskRegisters, AreUnknownForElementsBeyond256Bits) {
  const Bytes vpcmpeqb{0x62, 0xf1, 0x7d, 0x48, 0x74, 0xc9};  // %zmm1, %zmm0, %k1
  EXPECT_EQ(after(vpcmpeqb, kK1), (Known{0xfeff'fcfe, 0xffff'ffff}));
}

TEST_F(MaskRegisters, AreUnknownAfterComparisonsWithOneElementOfMemory) {
  const Bytes vpcmpeqd{0x62, 0xf1, 0x7d, 0x18, 0x76, 0x08};  // (%rax){1to4}, %xmm0, %k1
  p.regs[cpu::kRax] = cpu::known(kData);
  EXPECT_EQ(after(vpcmpeqd, kK1).mask, 0U);
}

TEST_F(MaskRegisters, AreCopiedToRegistersAndBack) {
  const Bytes to_ebx{0xc5, 0xfb, 0x93, 0xd8};  // kmovd %k0, %ebx
  p.regs[kK0] = cpu::known(0x1'8765'4321);
  EXPECT_EQ(after(to_ebx, cpu::kRbx), cpu::known(0x8765'4321));
  // The register tells the mask before, too.
  Program other;
  other.run(to_ebx);
  other.regs[cpu::kRbx] = cpu::known(5);
  EXPECT_EQ(other.solve().reg(0, kK0), (Known{5, 0xffff'ffff}));
}

TEST_F(MaskRegisters, AreLoaded) {
  const Bytes kmovq{0xc4, 0xe1, 0xf8, 0x90, 0x08};  // (%rax), %k1
  p.regs[cpu::kRax] = cpu::known(kData);
  p.memory[kData] = 0x1234'5678'9abc'def0;
  EXPECT_EQ(after(kmovq, kK1), cpu::known(0x1234'5678'9abc'def0));
}

TEST_F(MaskRegisters, AreCombined) {
  p.regs[kK1] = cpu::known(0xff);
  p.regs[kK2] = cpu::known(0x0102);
  EXPECT_EQ(after({0xc5, 0xed, 0x4b, 0xd9}, kK3), cpu::known(0x02ff));  // kunpckbw %k1, %k2, %k3
  EXPECT_EQ(after({0xc5, 0xed, 0x4a, 0xd9}, kK3), cpu::known(0x01));    // kaddb %k1, %k2, %k3
}

TEST_F(MaskRegisters, OfWhichOneIsShiftedLoseBits) {
  const Bytes kshiftrq{0xc4, 0xe3, 0xf9, 0x31, 0xc9, 0x20};  // $32, %k1, %k1
  p.regs[kK1] = cpu::known(0x1234);
  p.run(kshiftrq);
  EXPECT_EQ(p.solve().reg(0, kK1), (Known{0x1234'0000'0000, 0xffff'ffff'0000'0000}));
}

TEST_F(MaskRegisters, AreAllOnesAfterKxnorWithItself) {
  EXPECT_EQ(after({0xc5, 0xf4, 0x46, 0xc9}, kK1), cpu::known(0xffff));  // kxnorw %k1, %k1, %k1
}

/// Returns the flags after a test of k1 and k2.
std::uint64_t flags_after(const Bytes& insn, std::uint64_t k1, std::uint64_t k2) {
  Program p;
  p.run(insn);
  p.run(nop);
  p.regs[kK1] = cpu::known(k1);
  p.regs[kK2] = cpu::known(k2);
  const Known flags = p.solve().reg(1, cpu::kFlagsSlot);
  EXPECT_EQ(flags.mask & cpu::kArithmeticFlags, cpu::kArithmeticFlags);
  return flags.value & cpu::kArithmeticFlags;
}

TEST(MaskRegisterFlags, TellWhetherBitsAreSet) {
  constexpr std::uint64_t kZero = 1U << cpu::kZf;
  constexpr std::uint64_t kCarry = 1U << cpu::kCf;
  const Bytes kortestd{0xc4, 0xe1, 0xf9, 0x98, 0xc9};  // %k1, %k1
  EXPECT_EQ(flags_after(kortestd, 0, 0), kZero);
  EXPECT_EQ(flags_after(kortestd, 0xffff'ffff, 0), kCarry);
  EXPECT_EQ(flags_after(kortestd, 1, 0), 0U);
  const Bytes ktestb{0xc5, 0xf9, 0x99, 0xd1};  // %k1, %k2
  EXPECT_EQ(flags_after(ktestb, 0x0f, 0xf0), kZero);
  EXPECT_EQ(flags_after(ktestb, 0x0f, 0xff), kCarry);
  EXPECT_EQ(flags_after(ktestb, 0x0f, 0xf1), 0U);
  EXPECT_EQ(flags_after(ktestb, 0, 0), kZero | kCarry);
}

TEST(MaskRegisterFlags, OfABranchTellThatAMaskIsZero) {
  Program p;
  p.run({0xc4, 0xe1, 0xf9, 0x98, 0xc9});  // kortestd %k1, %k1
  p.run({0x75, 0x10});                    // jne, not taken
  p.run({0xc5, 0xf4, 0x46, 0xc9});        // kxnorw %k1, %k1, %k1
  EXPECT_EQ(p.solve().reg(0, kK1), (Known{0, 0xffff'ffff}));
}

TEST_F(MaskRegisters, DoNotChangeWhereAMaskedInstructionIsUnknown) {
  p.run({0x62, 0xf1, 0x7d, 0x89, 0x6f, 0xc1});  // vmovdqa32 %xmm1, %xmm0{%k1}{z}
  p.regs[kK1] = cpu::known(3);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(0, kK1), cpu::known(3));
  EXPECT_EQ(solved.reg(0, cpu::vector_slot(0, 0)).mask, 0U);
}

TEST(TernaryLogic, FollowsItsTable) {
  Program p;
  p.run({0x62, 0xf3, 0x6d, 0x08, 0x25, 0xc1, 0x96});  // vpternlogd $0x96, %xmm1, %xmm2, %xmm0
  p.run({0x62, 0xf3, 0x7d, 0x28, 0x25, 0xc0, 0xff});  // vpternlogd $0xff, %ymm0, %ymm0, %ymm0
  p.run(nop);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(1, cpu::vector_slot(0, 0)).mask, 0U) << "xmm0 was not known";
  EXPECT_EQ(solved.reg(1, cpu::vector_slot(0, 2)), cpu::known(0));
  EXPECT_EQ(solved.reg(2, cpu::vector_slot(0, 3)), cpu::known(~std::uint64_t{0}));
}

TEST(TernaryLogic, OfKnownOperandsIsKnown) {
  Program p;
  p.run({0x62, 0xf3, 0x7d, 0x28, 0x25, 0xc0, 0xff});  // vpternlogd $0xff, %ymm0, %ymm0, %ymm0
  p.run({0x62, 0xf3, 0x6d, 0x08, 0x25, 0xc1, 0x80});  // vpternlogd $0x80, %xmm1, %xmm2, %xmm0
  p.run(nop);
  p.regs[cpu::vector_slot(1, 0)] = cpu::known(0xff0f);
  p.regs[cpu::vector_slot(2, 0)] = cpu::known(0xf1f1);
  EXPECT_EQ(p.solve().reg(2, cpu::vector_slot(0, 0)), cpu::known(0xf101)) << "all three are set";
}

}  // namespace
}  // namespace backtrail::decoder::values
