#pragma once
/// @file
/// Bytes written as text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace backtrail::arch {

/// "66 0f 1f" -> bytes. Two digits each, spaces between.
inline std::vector<std::uint8_t> hex_bytes(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 3) {
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoul(std::string{text.substr(i, 2)}, nullptr, 16)));
  }
  return bytes;
}

}  // namespace backtrail::arch
