#pragma once
/// @file
/// How many times this process has read a file: what work costs, whatever else the machine does.

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace backtrail::test {

/// System calls like read(2) and pread(2) until now; nullopt where the kernel does not count them.
/// Asking costs a few.
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
