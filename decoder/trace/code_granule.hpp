// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Code in pieces of eight bytes, by which facts tell it.

#include <algorithm>
#include <cstdint>

#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {

inline constexpr std::uint64_t kCodeGranule = arch::kMostCodeBytes;

/// Returns the address of the granule that a byte is in.
[[nodiscard]] constexpr std::uint64_t granule_of(std::uint64_t address) {
  return address - address % kCodeGranule;
}

/// Returns the bits of a granule's value that are bytes in [begin, end), lowest first.
[[nodiscard]] constexpr std::uint64_t granule_mask(std::uint64_t granule, std::uint64_t begin,
                                                   std::uint64_t end) {
  const auto below = [granule](std::uint64_t address) {
    const std::uint64_t bytes = address <= granule ? 0 : address - granule;
    return bytes >= kCodeGranule ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
  };
  return below(end) & ~below(begin);
}

}  // namespace backtrail::decoder
