#pragma once
/// @file
/// XSAVE areas as core files want them.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86 {

/// Where an XSAVE area says which components it has room for (first of the bytes that are
/// software's).
inline constexpr std::size_t kXsaveXcr0Offset = 464;

/// `area`, laid out as `from` says, at the offsets of Intel CPUs: AMD's are others, and gdb up to
/// 13 reads only those. Components that the table of these offsets does not know are left out, of
/// XCR0 and XSTATE_BV too. A bare FXSAVE image stays one.
[[nodiscard]] std::vector<std::uint8_t> to_intel_layout(const XsaveLayout& from,
                                                        std::span<const std::uint8_t> area);

/// The layout of an area found in a core: by the XCR0 in it, and by its size, which tells AMD's
/// from Intel's.
[[nodiscard]] XsaveLayout core_xsave_layout(std::span<const std::uint8_t> area);

}  // namespace backtrail::arch::x86
