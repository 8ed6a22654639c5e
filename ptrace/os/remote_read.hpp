#pragma once
/// @file
/// Many places of a process's memory at a time.

#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/types.h>

namespace backtrail::tracee {

struct MemoryPart {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

/// Reads the parts, one behind the other, into `out`, which has room for all.
/// @return How many bytes could be read in a row, from the first part on.
[[nodiscard]] std::size_t read_parts(pid_t tid, std::span<const MemoryPart> parts,
                                     std::span<std::uint8_t> out);

}  // namespace backtrail::tracee
