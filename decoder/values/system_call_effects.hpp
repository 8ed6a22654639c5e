// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells which memory and mappings a system call of x86-64 Linux may change.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "arch/cpu/values.hpp"

namespace backtrail::decoder::values {

struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

struct CallEffects {
  /// At most three ranges that the kernel may write; nullopt: unknown so far, or any memory.
  std::optional<std::vector<MemoryRange>> writes;
  /// A range whose mapping or permissions may change.
  std::optional<MemoryRange> mapping;
  /// A mapping may be gone, or its permissions are others.
  bool removes = false;
  /// The heap's mapping may change (brk).
  bool heap = false;
};

/// @param in Number and six arguments, as far as known.
/// @param out The result, as far as known.
/// @param stack The stack pointer, as far as known.
/// @return nullopt if unknown so far, or if the call may change any mapping.
[[nodiscard]] std::optional<CallEffects> call_effects(
    const std::array<arch::cpu::values::Known, 7>& in, const arch::cpu::values::Known& out,
    const arch::cpu::values::Known& stack);

}  // namespace backtrail::decoder::values
