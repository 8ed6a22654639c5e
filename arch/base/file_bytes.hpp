// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "arch/base/result.hpp"

namespace backtrail {

/// Reads all bytes of a file or pipe. Errors: errno values.
[[nodiscard]] inline Result<std::vector<std::uint8_t>> file_bytes(const std::string& path) {
  constexpr std::size_t kPiece = 1U << 20U;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rbe"),
                                                             std::fclose};
  if (!file) return fail_errno("open a file");
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  std::vector<std::uint8_t> bytes;
  for (std::size_t size = 0;;) {
    bytes.resize(size + std::max(size, kPiece));
    const std::size_t wanted = bytes.size() - size;
    const std::size_t got = std::fread(bytes.data() + size, 1, wanted, file.get());
    size += got;
    if (got == wanted) continue;
    if (std::ferror(file.get()) != 0) return fail_errno("read a file");
    bytes.resize(size);
    return bytes;
  }
}

}  // namespace backtrail
