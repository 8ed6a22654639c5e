#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace backtrail {

/// All bytes of a file, a pipe too; nothing when it cannot be read.
[[nodiscard]] inline std::optional<std::vector<std::uint8_t>> file_bytes(const std::string& path) {
  constexpr std::size_t kPiece = 1U << 20U;
  std::ifstream file{path, std::ios::binary};
  std::vector<std::uint8_t> bytes;
  std::size_t size = 0;
  while (file) {
    bytes.resize(size + std::max(size, kPiece));
    // A stream's characters are bytes ([basic.lval]/11).
    file.read(reinterpret_cast<char*>(bytes.data() + size),
              static_cast<std::streamsize>(bytes.size() - size));
    size += static_cast<std::size_t>(file.gcount());
  }
  if (!file.eof()) return std::nullopt;
  bytes.resize(size);
  return bytes;
}

}  // namespace backtrail
