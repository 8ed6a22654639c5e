// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/debug_registers.hpp"

#include <gtest/gtest.h>

namespace backtrail::arch::x86 {
namespace {

constexpr TraceeAddr kAddress{0x1000};

std::uint64_t control_after(std::uint64_t length, DebugAccess access) {
  DebugRegisters registers;
  EXPECT_TRUE(registers.insert(kAddress, length, access));
  return registers.control();
}

// DR7 (SDM vol. 3, "Debug Control Register (DR7)"): L0 is bit 0, R/W0 are bits 16-17, LEN0 18-19.
TEST(DebugRegisters, EncodesAccessAndLength) {
  EXPECT_EQ(control_after(1, DebugAccess::kExecute), 0x00000001U);
  EXPECT_EQ(control_after(1, DebugAccess::kWrite), 0x00010001U);
  EXPECT_EQ(control_after(1, DebugAccess::kReadWrite), 0x00030001U);
  EXPECT_EQ(control_after(2, DebugAccess::kWrite), 0x00050001U);
  EXPECT_EQ(control_after(4, DebugAccess::kWrite), 0x000d0001U);
  EXPECT_EQ(control_after(8, DebugAccess::kWrite), 0x00090001U);
  EXPECT_EQ(control_after(8, DebugAccess::kReadWrite), 0x000b0001U);
}

TEST(DebugRegisters, FillsSlotsInOrder) {
  DebugRegisters registers;
  EXPECT_TRUE(registers.empty());
  for (std::uint64_t i = 0; i < DebugRegisters::kSlots; ++i) {
    ASSERT_TRUE(registers.insert(kAddress + 8 * i, 4, DebugAccess::kWrite));
    EXPECT_EQ(registers.address(i), 0x1000 + 8 * i);
  }
  EXPECT_EQ(registers.control(), 0xdddd0055U);
  EXPECT_FALSE(registers.empty());
}

TEST(DebugRegisters, SplitsUnalignedRanges) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(TraceeAddr{0x1001}, 7, DebugAccess::kWrite));
  EXPECT_EQ(registers.address(0), 0x1001U);
  EXPECT_EQ(registers.address(1), 0x1002U);
  EXPECT_EQ(registers.address(2), 0x1004U);
  EXPECT_EQ(registers.address(3), 0U);
  EXPECT_EQ(registers.control(), 0x0d510015U);
}

TEST(DebugRegisters, SplitsLongRanges) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(TraceeAddr{0x1000}, 32, DebugAccess::kReadWrite));
  EXPECT_EQ(registers.address(3), 0x1018U);
  EXPECT_EQ(registers.control(), 0xbbbb0055U);
}

/// Exactly one slot must watch each byte of a range, and none a byte outside.
TEST(DebugRegisters, CoversRangesExactly) {
  constexpr std::array<std::uint64_t, 4> kBytes{1, 2, 8, 4};  // Indexed by LEN.
  for (std::uint64_t start = 0x1000; start < 0x1010; ++start) {
    for (std::uint64_t length = 1; length <= 24; ++length) {
      DebugRegisters registers;
      if (!registers.insert(TraceeAddr{start}, length, DebugAccess::kWrite)) {
        EXPECT_TRUE(registers.empty());
        continue;
      }
      std::uint64_t covered = 0;
      for (std::size_t slot = 0; slot < DebugRegisters::kSlots; ++slot) {
        if (((registers.control() >> (2 * slot)) & 1) == 0) continue;
        const std::uint64_t bytes = kBytes[(registers.control() >> (18 + 4 * slot)) & 3];
        EXPECT_EQ(registers.address(slot), start + covered);
        EXPECT_EQ(registers.address(slot) % bytes, 0U);
        covered += bytes;
      }
      EXPECT_EQ(covered, length) << start;
    }
  }
}

TEST(DebugRegisters, ChangesNothingWhenSlotsDoNotSuffice) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(kAddress, 4, DebugAccess::kWrite));
  ASSERT_TRUE(registers.insert(kAddress + 4, 4, DebugAccess::kWrite));
  const std::uint64_t control = registers.control();
  // Needs four slots: the first one is shared, and one is missing.
  const Result<void> result = registers.insert(kAddress + 4, 15, DebugAccess::kWrite);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().is(TraceErrc::kBusy));
  EXPECT_EQ(registers.control(), control);
  EXPECT_EQ(registers.address(2), 0U);
  // The reference count of the shared slot is unchanged.
  ASSERT_TRUE(registers.remove(kAddress + 4, 4, DebugAccess::kWrite));
  EXPECT_EQ(registers.control(), 0x000d0001U);
}

TEST(DebugRegisters, BoundsHostileLengths) {
  DebugRegisters registers;
  const Result<void> huge = registers.insert(TraceeAddr{0}, ~std::uint64_t{0}, DebugAccess::kWrite);
  ASSERT_FALSE(huge);
  EXPECT_TRUE(huge.error().is(TraceErrc::kBusy));
  const Result<void> wraps =
      registers.insert(TraceeAddr{~std::uint64_t{0} - 3}, 8, DebugAccess::kWrite);
  ASSERT_FALSE(wraps);
  EXPECT_TRUE(wraps.error().is(TraceErrc::kInvalidArgument));
  EXPECT_TRUE(registers.insert(TraceeAddr{~std::uint64_t{0} - 3}, 4, DebugAccess::kWrite));
}

TEST(DebugRegisters, RefusesLengthsThatMakeNoSense) {
  DebugRegisters registers;
  for (const Result<void>& result : {registers.insert(kAddress, 0, DebugAccess::kWrite),
                                     registers.insert(kAddress, 2, DebugAccess::kExecute)}) {
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().is(TraceErrc::kInvalidArgument));
  }
  EXPECT_TRUE(registers.empty());
}

TEST(DebugRegisters, SharesASlotAmongEqualRequests) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(kAddress, 4, DebugAccess::kWrite));
  ASSERT_TRUE(registers.insert(kAddress, 4, DebugAccess::kWrite));
  EXPECT_EQ(registers.control(), 0x000d0001U);
  ASSERT_TRUE(registers.remove(kAddress, 4, DebugAccess::kWrite));
  EXPECT_EQ(registers.control(), 0x000d0001U);
  ASSERT_TRUE(registers.remove(kAddress, 4, DebugAccess::kWrite));
  EXPECT_TRUE(registers.empty());
  EXPECT_EQ(registers.control(), 0U);
  EXPECT_EQ(registers.address(0), 0U);
}

TEST(DebugRegisters, SharesPiecesOfOverlappingRanges) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(kAddress, 16, DebugAccess::kWrite));
  ASSERT_TRUE(registers.insert(kAddress + 8, 16, DebugAccess::kWrite));
  EXPECT_EQ(registers.control() & 0xff, 0x15U);
  ASSERT_TRUE(registers.remove(kAddress, 16, DebugAccess::kWrite));
  EXPECT_EQ(registers.control() & 0xff, 0x14U);
  EXPECT_EQ(registers.address(1), 0x1008U);
}

TEST(DebugRegisters, KeepsDifferentAccessesApart) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(kAddress, 1, DebugAccess::kWrite));
  ASSERT_TRUE(registers.insert(kAddress, 1, DebugAccess::kReadWrite));
  ASSERT_TRUE(registers.insert(kAddress, 1, DebugAccess::kExecute));
  EXPECT_EQ(registers.control(), 0x00310015U);
  ASSERT_TRUE(registers.remove(kAddress, 1, DebugAccess::kReadWrite));
  EXPECT_EQ(registers.control(), 0x00010011U);
}

TEST(DebugRegisters, UsesFreedSlotsAgain) {
  DebugRegisters registers;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(registers.insert(kAddress + 8 * i, 8, DebugAccess::kWrite));
  }
  ASSERT_TRUE(registers.remove(kAddress + 8, 8, DebugAccess::kWrite));
  ASSERT_TRUE(registers.insert(TraceeAddr{0x2000}, 1, DebugAccess::kExecute));
  EXPECT_EQ(registers.address(1), 0x2000U);
  EXPECT_EQ(registers.control(), 0x99090055U);
}

TEST(DebugRegisters, DoesNotRemoveWhatWasNotInserted) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(kAddress, 16, DebugAccess::kWrite));
  for (const Result<void>& result : {registers.remove(kAddress, 8, DebugAccess::kWrite),
                                     registers.remove(kAddress, 16, DebugAccess::kReadWrite),
                                     registers.remove(kAddress + 1, 16, DebugAccess::kWrite)}) {
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().is(TraceErrc::kNotFound));
  }
  EXPECT_EQ(registers.control() & 0xff, 5U);
}

TEST(DebugRegisters, NamesTheSlotThatFired) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(kAddress, 4, DebugAccess::kWrite));
  ASSERT_TRUE(registers.insert(TraceeAddr{0x2000}, 1, DebugAccess::kReadWrite));
  const auto hit = registers.hit(0xffff0ff2);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->address, TraceeAddr{0x2000});
  EXPECT_EQ(hit->access, DebugAccess::kReadWrite);
  EXPECT_FALSE(registers.hit(0xffff0ff0));
  EXPECT_FALSE(registers.hit(0xffff4ff0));  // BS: a single step.
}

TEST(DebugRegisters, IgnoresSlotsThatAreNotEnabled) {
  DebugRegisters registers;
  EXPECT_FALSE(registers.hit(0xf));
  ASSERT_TRUE(registers.insert(kAddress, 4, DebugAccess::kWrite));
  EXPECT_FALSE(registers.hit(0xe));
  ASSERT_TRUE(registers.hit(0xf));
  EXPECT_EQ(registers.hit(0xf)->address, kAddress);
}

TEST(DebugRegisters, ReportsDataBeforeABreakpoint) {
  DebugRegisters registers;
  ASSERT_TRUE(registers.insert(TraceeAddr{0x401000}, 1, DebugAccess::kExecute));
  ASSERT_TRUE(registers.insert(kAddress, 4, DebugAccess::kWrite));
  EXPECT_EQ(registers.hit(3)->address, kAddress);
  EXPECT_EQ(registers.hit(1)->access, DebugAccess::kExecute);
}

}  // namespace
}  // namespace backtrail::arch::x86
