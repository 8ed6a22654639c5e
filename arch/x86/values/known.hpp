// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A value with partly known bits.

#include <cstdint>

namespace backtrail::arch::x86::values {

/// Returns a mask of the lowest `width` bits; of all bits for 64 and more.
[[nodiscard]] constexpr std::uint64_t low_bits(unsigned width) {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

/// Bits outside of `mask` are unknown; they are 0 in `value`.
struct Known {
  std::uint64_t value = 0;
  std::uint64_t mask = 0;

  [[nodiscard]] constexpr bool all(unsigned width = 64) const {
    return (mask & low_bits(width)) == low_bits(width);
  }
  [[nodiscard]] constexpr bool bit_known(unsigned bit) const { return (mask >> bit & 1) != 0; }
  [[nodiscard]] constexpr bool bit(unsigned bit) const { return (value >> bit & 1) != 0; }

  /// Adds `bits` as the value of the bits in `where`.
  /// @return false if they contradict known bits.
  constexpr bool learn(std::uint64_t bits, std::uint64_t where) {
    const bool agrees = ((value ^ bits) & mask & where) == 0;
    value |= bits & where & ~mask;
    mask |= where;
    return agrees;
  }
  bool operator==(const Known&) const = default;
};

[[nodiscard]] constexpr Known known(std::uint64_t value) {
  return {value, ~std::uint64_t{0}};
}

}  // namespace backtrail::arch::x86::values
