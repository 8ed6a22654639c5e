// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Converts XSAVE areas for core files.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86 {

/// Offset of the XCR0 value in an XSAVE area of a core (the first of the bytes reserved for
/// software).
inline constexpr std::size_t kXsaveXcr0Offset = 464;

/// Converts `area` from layout `from` to the offsets of Intel CPUs, because AMD's differ and gdb up
/// to 13 reads only Intel's. Components without a known Intel offset are left out, and cleared in
/// XCR0 and XSTATE_BV. A bare FXSAVE image stays unchanged.
[[nodiscard]] std::vector<std::uint8_t> to_intel_layout(const XsaveLayout& from,
                                                        std::span<const std::uint8_t> area);

/// Returns the layout of an area found in a core, by its XCR0 value, and by its size, which
/// distinguishes AMD from Intel.
[[nodiscard]] XsaveLayout core_xsave_layout(std::span<const std::uint8_t> area);

}  // namespace backtrail::arch::x86
