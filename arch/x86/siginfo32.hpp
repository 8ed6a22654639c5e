// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Converts siginfo_t of 32-bit programs, which a 64-bit tracer receives in the 64-bit layout.
/// Source: linux/include/uapi/asm-generic/siginfo.h; linux/compat.h (compat_siginfo).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace backtrail::arch::x86 {

inline constexpr std::size_t kSiginfoBytes = 128;
using SiginfoBytes = std::array<std::uint8_t, kSiginfoBytes>;

/// Returns the i386 form of an x86-64 siginfo_t. The fields depend on signal and code; bytes
/// outside of fields are 0.
[[nodiscard]] SiginfoBytes siginfo_to_i386(std::span<const std::uint8_t, kSiginfoBytes> native);

/// Returns the x86-64 form of an i386 siginfo_t. Addresses are zero-extended, numbers
/// sign-extended.
[[nodiscard]] SiginfoBytes siginfo_from_i386(std::span<const std::uint8_t, kSiginfoBytes> i386);

}  // namespace backtrail::arch::x86
