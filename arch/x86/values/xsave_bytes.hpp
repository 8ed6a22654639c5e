// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How much memory XSAVE, and the kernel in a signal's frame, may write.

#include <cstdint>
#include <span>

namespace backtrail::arch::x86::values {

/// XCR0 of an unknown CPU.
inline constexpr std::uint64_t kAnyComponents = ~std::uint64_t{0};

/// Returns the XCR0 that an XSAVE area of ptrace or of a core file names; kAnyComponents if it
/// names none.
[[nodiscard]] std::uint64_t components_of(std::span<const std::uint8_t> xsave_area);

/// Returns an upper bound of the bytes that XSAVE writes of these components (bits of XCR0), in the
/// standard format: the larger of Intel's and AMD's layouts.
[[nodiscard]] std::uint32_t xsave_bytes(std::uint64_t components);
/// Returns an upper bound of the bytes that XSAVEC writes, in the compacted format.
[[nodiscard]] std::uint32_t compacted_xsave_bytes(std::uint64_t components);

/// Returns an upper bound of the bytes from the handler's stack pointer on that the kernel writes
/// as a signal's frame.
[[nodiscard]] std::uint32_t signal_frame_bytes(std::uint64_t components);

}  // namespace backtrail::arch::x86::values
