// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Counts this process's reads, to measure work independently of the machine's load.

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace backtrail::test {

/// Returns the number of read system calls so far (read(2), pread(2), ...); nullopt if the kernel
/// does not count them. The call itself adds a few.
[[nodiscard]] inline std::optional<std::uint64_t> own_reads() {
  std::ifstream file{"/proc/self/io"};
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (name == "syscr:") return value;
  }
  return std::nullopt;
}

}  // namespace backtrail::test
