// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Register bytes and XSAVE layouts for tests.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86 {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint64_t kXcr0 = 0x2e7;
inline constexpr std::size_t kXstateBvAt = 512;
inline constexpr std::size_t kMxcsrAt = 24;

/// Returns the layout of AMD CPUs, which differs from Intel's: CPUID leaf 0DH of a Zen 4 with
/// protection keys.
inline XsaveLayout amd_layout(std::uint64_t xcr0 = kXcr0) {
  return make_xsave_layout(xcr0, [](unsigned component) -> XsaveSubleaf {
    switch (component) {
      case 2:
        return {256, 576};
      case 5:
        return {64, 832};
      case 6:
        return {512, 896};
      case 7:
        return {1024, 1408};
      case 9:
        return {8, 2432};
      case 11:
        return {16, 2440};
      default:
        return {};
    }
  });
}

inline void put(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

inline std::uint64_t get(std::span<const std::uint8_t> bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

}  // namespace backtrail::arch::x86
