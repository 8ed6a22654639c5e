#pragma once
/// @file
/// What happens to a thread between its branches: it leaves and gets a CPU, it enters the kernel
/// and comes back.

#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

enum class MarkKind : std::uint8_t {
  kArrives,         ///< The thread got a CPU.
  kDeparts,         ///< It left the CPU and waits for something.
  kPreempted,       ///< It left the CPU and would rather not have.
  kLeftSystemCall,  ///< It entered the kernel by a system call at `at`.
  kLeftSoftware,    ///< By another instruction (INT n, a far transfer).
  kLeftAsync,       ///< By a fault or an interrupt, before the instruction at `at`.
  kCameBack,        ///< It came back from the kernel to `at`.
};

struct TraceMark {
  MarkKind kind = MarkKind::kArrives;
  /// Nanoseconds of CLOCK_MONOTONIC; 0 = not known. Of marks alone: records carry no time, and a
  /// mark's place among them is its place in the stream, not its time.
  std::uint64_t time_ns = 0;
  std::int32_t cpu = -1;  ///< -1 = not known.
  TraceeAddr at;          ///< Of the kernel's marks.
  bool operator==(const TraceMark&) const = default;
};

/// An address that no user program has and that says how the kernel was entered, for consumers that
/// want one record form only: the last page of the address space, the kind in its low bits.
[[nodiscard]] constexpr TraceeAddr pseudo_address(MarkKind kind) {
  return TraceeAddr{0xffff'ffff'ffff'f000U + static_cast<std::uint64_t>(kind)};
}

}  // namespace backtrail::decoder
