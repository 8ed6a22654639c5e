// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Plans where a newly executed program must lie to have the same addresses each time, although the
/// kernel chose some at random.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {

/// A program or a dynamic linker as loaded in memory.
struct LoadedImage {
  std::uint64_t begin = 0;         ///< Start of its first mapping.
  std::uint64_t alignment = 4096;  ///< Its address must stay the same modulo this.
  bool movable = true;             ///< Not linked for a fixed address (ET_EXEC).
};

struct AddressPlan {
  struct Move {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t to = 0;
    bool operator==(const Move&) const = default;
  };
  /// Moves of whole mappings to free addresses.
  std::vector<Move> moves;
  /// Added to the addresses of the two images, modulo 2^64.
  std::uint64_t program_distance = 0;
  std::uint64_t linker_distance = 0;
  /// The kernel must not map anything from this address on; 0: no restriction.
  std::uint64_t top = 0;
};

/// Returns the plan; nullopt if the program lies at the planned addresses already, or if there is
/// no room.
/// @param maps Mappings of a process that has not run yet, ascending.
[[nodiscard]] std::optional<AddressPlan> plan_addresses(std::span<const MapEntry> maps,
                                                        const LoadedImage& program,
                                                        const std::optional<LoadedImage>& linker);

/// Returns the `top` directly below which an image that begins at `begin` lies; 0 if it does not
/// lie as planned.
[[nodiscard]] std::uint64_t planned_top(std::uint64_t begin);

/// Returns true if the two images begin at planned addresses.
[[nodiscard]] bool are_planned(std::uint64_t program, std::uint64_t linker);

}  // namespace backtrail::tracee::cache
