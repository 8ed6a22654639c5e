// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Parses bytes from text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace backtrail::arch {

/// Converts "66 0f 1f" to bytes: two digits each, with spaces in between.
inline std::vector<std::uint8_t> hex_bytes(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 3) {
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoul(std::string{text.substr(i, 2)}, nullptr, 16)));
  }
  return bytes;
}

}  // namespace backtrail::arch
