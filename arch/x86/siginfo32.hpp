#pragma once
/// @file
/// siginfo_t of 32-bit programs, which a 64-bit tracer gets in the 64-bit layout.
/// Source: linux/include/uapi/asm-generic/siginfo.h; linux/compat.h (compat_siginfo).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace backtrail::arch::x86 {

inline constexpr std::size_t kSiginfoBytes = 128;
using SiginfoBytes = std::array<std::uint8_t, kSiginfoBytes>;

/// The i386 form of an x86-64 siginfo_t. Which fields there are depends on signal and code. Bytes
/// that no field covers are 0.
[[nodiscard]] SiginfoBytes siginfo_to_i386(std::span<const std::uint8_t, kSiginfoBytes> native);

/// The x86-64 form of an i386 siginfo_t: addresses are zero-extended, numbers sign-extended.
[[nodiscard]] SiginfoBytes siginfo_from_i386(std::span<const std::uint8_t, kSiginfoBytes> i386);

}  // namespace backtrail::arch::x86
