// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Events of a thread between its branches: it gets or leaves a CPU, it enters or leaves the
/// kernel.

#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

enum class MarkKind : std::uint8_t {
  kArrives,         ///< Got a CPU.
  kDeparts,         ///< Left the CPU to wait for something.
  kPreempted,       ///< Left the CPU while it was runnable.
  kLeftSystemCall,  ///< Entered the kernel by a system call at `at`.
  kLeftSoftware,    ///< Entered the kernel by another instruction (INT n, a far transfer).
  kLeftAsync,       ///< Entered the kernel by a fault or an interrupt, before the instruction at
                    ///< `at`.
  kCameBack,        ///< Returned from the kernel to `at`.
};

struct TraceMark {
  MarkKind kind = MarkKind::kArrives;
  /// Nanoseconds of CLOCK_MONOTONIC; 0 if unknown. Records carry no time. A mark's place among
  /// records is its place in the stream, not its time.
  std::uint64_t time_ns = 0;
  std::int32_t cpu = -1;  ///< -1 if unknown.
  TraceeAddr at;          ///< Set for kernel entries and returns.
  bool operator==(const TraceMark&) const = default;
};

/// Returns an address that no user program has and that encodes how the kernel was entered: the
/// last page of the address space, with the kind in the low bits. For consumers that accept records
/// only.
[[nodiscard]] constexpr TraceeAddr pseudo_address(MarkKind kind) {
  return TraceeAddr{0xffff'ffff'ffff'f000U + static_cast<std::uint64_t>(kind)};
}

}  // namespace backtrail::decoder
