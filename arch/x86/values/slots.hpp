// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The registers whose past values are recovered, in slots of up to 64 bits.

#include <cstddef>
#include <cstdint>

namespace backtrail::arch::x86::values {

/// Index of a 64-bit piece of the register state. The general registers are in the order of their
/// encoding (rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ... r15).
using Slot = std::uint16_t;

inline constexpr Slot kRax = 0;
inline constexpr Slot kRcx = 1;
inline constexpr Slot kRdx = 2;
inline constexpr Slot kRbx = 3;
inline constexpr Slot kRsp = 4;
inline constexpr Slot kRbp = 5;
inline constexpr Slot kRsi = 6;
inline constexpr Slot kRdi = 7;
inline constexpr Slot kR11 = 11;
inline constexpr Slot kGeneralSlots = 16;
/// rflags; only the bits of kTrackedFlags can be known.
inline constexpr Slot kFlagsSlot = 16;
inline constexpr Slot kFsBaseSlot = 17;
inline constexpr Slot kGsBaseSlot = 18;
/// The low 256 bits of xmm0/ymm0 ... ymm31, four lanes each.
inline constexpr Slot kFirstVectorSlot = 19;
inline constexpr unsigned kVectorRegisters = 32;
inline constexpr unsigned kLanes = 4;
/// k0 ... k7, the mask registers of AVX-512.
inline constexpr Slot kFirstMaskSlot = kFirstVectorSlot + kVectorRegisters * kLanes;
inline constexpr unsigned kMaskRegisters = 8;
inline constexpr Slot kSlotCount = kFirstMaskSlot + kMaskRegisters;

[[nodiscard]] constexpr Slot vector_slot(unsigned reg, unsigned lane) {
  return static_cast<Slot>(kFirstVectorSlot + reg * kLanes + lane);
}

[[nodiscard]] constexpr Slot mask_slot(unsigned reg) {
  return static_cast<Slot>(kFirstMaskSlot + reg);
}

/// Bit positions in rflags.
inline constexpr unsigned kCf = 0;
inline constexpr unsigned kPf = 2;
inline constexpr unsigned kAf = 4;
inline constexpr unsigned kZf = 6;
inline constexpr unsigned kSf = 7;
inline constexpr unsigned kDf = 10;
inline constexpr unsigned kOf = 11;
inline constexpr std::uint64_t kArithmeticFlags = 0x8d5;
inline constexpr std::uint64_t kTrackedFlags = kArithmeticFlags | std::uint64_t{1} << kDf;

}  // namespace backtrail::arch::x86::values
