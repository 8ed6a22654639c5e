#pragma once
/// @file
/// Which memory and mappings a system call of x86-64 Linux may change.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "arch/x86/values/known.hpp"

namespace backtrail::decoder::values {

struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

struct CallEffects {
  /// At most three ranges that the kernel may write; nullopt: not known yet, or anywhere.
  std::optional<std::vector<MemoryRange>> writes;
  /// A range whose mapping or permissions may differ before and after.
  std::optional<MemoryRange> mapping;
  /// The heap's mapping may differ (brk).
  bool heap = false;
};

/// @param in   Number and six arguments, as far as known.
/// @param out  The result, as far as known.
/// @return nullopt: not known yet, or a call that may change any mapping.
[[nodiscard]] std::optional<CallEffects> call_effects(
    const std::array<arch::x86::values::Known, 7>& in, const arch::x86::values::Known& out);

}  // namespace backtrail::decoder::values
