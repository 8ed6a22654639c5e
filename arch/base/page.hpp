// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The page: the unit in which memory is mapped and protected.

#include <cstdint>

namespace backtrail {

/// Bytes of a page (SDM vol. 3A, 4-KByte pages; getconf PAGE_SIZE on x86-64 Linux).
inline constexpr std::uint64_t kPageBytes = 4096;

/// Returns the begin of the page that `address` lies in.
[[nodiscard]] constexpr std::uint64_t page_begin(std::uint64_t address) {
  return address & ~(kPageBytes - 1);
}

/// Returns the least multiple of kPageBytes that is at least `bytes`.
[[nodiscard]] constexpr std::uint64_t round_up_to_pages(std::uint64_t bytes) {
  return page_begin(bytes + kPageBytes - 1);
}

}  // namespace backtrail
