// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The code in memory that an ended program has left: the next process of that program needs no
/// copy of it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace backtrail::tracee::cache {

/// The memory holds `code` from its beginning on, but for the four bytes at each of `changed`.
struct LeftCode {
  std::span<const std::uint8_t> code;  ///< Saved code; empty: nothing is known.
  std::shared_ptr<const void> owner;   ///< Keeps `code` alive.
  std::vector<std::uint32_t> changed;  ///< Code offsets, some of them more than once.

  /// Bytes at each of `changed`.
  static constexpr std::size_t kChangedBytes = 4;
};

}  // namespace backtrail::tracee::cache
