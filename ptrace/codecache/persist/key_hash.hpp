// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// File names for keys.

#include <cstdint>
#include <string_view>

namespace backtrail::tracee::cache {

/// Returns the FNV-1a hash. A file contains its key, so keys with equal hashes at worst replace
/// each other.
[[nodiscard]] constexpr std::uint64_t key_hash(std::string_view key) {
  std::uint64_t value = 0xcbf2'9ce4'8422'2325ULL;
  for (const char c : key) value = (value ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3ULL;
  return value;
}

}  // namespace backtrail::tracee::cache
