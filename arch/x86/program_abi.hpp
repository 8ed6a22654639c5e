// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the CPU and the System V ABI fix for programs on x86-64.

#include <cstdint>

namespace backtrail::arch::x86 {

/// INT3, the breakpoint instruction: one byte. Source: SDM vol. 2A, INT n/INTO/INT3/INT1.
inline constexpr std::uint8_t kInt3 = 0xcc;
/// TF in RFLAGS: the next instruction traps. Source: SDM vol. 1, RFLAGS.
inline constexpr std::uint64_t kTrapFlag = 0x100;
/// AC in RFLAGS: unaligned accesses of user code fault. Source: SDM vol. 1, RFLAGS.
inline constexpr std::uint64_t kAlignmentFlag = 0x4'0000;
/// Selectors of user code in cs. Source: __USER_CS and __USER32_CS, asm/segment.h of the kernel.
inline constexpr std::uint8_t kCodeSegment64 = 0x33;
inline constexpr std::uint8_t kCodeSegment32 = 0x23;
/// Bytes below rsp that the kernel and signal handlers leave alone. Source: System V ABI, AMD64
/// supplement, "The Stack Frame".
inline constexpr std::uint64_t kRedZoneBytes = 128;
/// rsp is a multiple of this before a call. Source: as above.
inline constexpr std::uint64_t kStackAlignment = 16;

}  // namespace backtrail::arch::x86
