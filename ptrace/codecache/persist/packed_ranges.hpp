// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packs the ranges of native code that a superblock was made of, a few bytes each.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/cpu/translator.hpp"

namespace backtrail::tracee::cache {

/// Half-open ranges [begin, end).
using CodeRanges = std::vector<arch::cpu::translate::Branch>;
/// Returns true if the address is in the range.
[[nodiscard]] inline bool is_in(const arch::cpu::translate::Branch& range, TraceeAddr address) {
  return range.first <= address && address < range.second;
}

/// Appends the packed ranges of the superblock with start pc `start`.
void pack_ranges(std::span<const arch::cpu::translate::Branch> ranges, TraceeAddr start,
                 std::vector<std::uint8_t>& out);
[[nodiscard]] CodeRanges unpack_ranges(std::span<const std::uint8_t> packed, TraceeAddr start);

}  // namespace backtrail::tracee::cache
