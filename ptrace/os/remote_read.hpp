// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads many parts of a process's memory with few calls.

#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/types.h>

namespace backtrail::tracee {

struct MemoryPart {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

/// Reads the parts one after the other into `out`, which has room for all.
/// @return Number of bytes read without a failure, counted from the first part.
[[nodiscard]] std::size_t read_parts(pid_t tid, std::span<const MemoryPart> parts,
                                     std::span<std::uint8_t> out);

}  // namespace backtrail::tracee
