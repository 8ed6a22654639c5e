#pragma once
/// @file
/// Where a program that has just been executed is to lie so that it has the same addresses each
/// time, although the kernel has chosen some at random.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {

/// A program or a dynamic linker in memory.
struct LoadedImage {
  std::uint64_t begin = 0;         ///< Of its first mapping.
  std::uint64_t alignment = 4096;  ///< What its addresses have to remain congruent by.
  bool movable = true;             ///< Not linked for an address (ET_EXEC).
};

struct AddressPlan {
  struct Move {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t to = 0;
    bool operator==(const Move&) const = default;
  };
  /// Of whole mappings, to where nothing is.
  std::vector<Move> moves;
  /// What is added to their addresses, modulo 2^64.
  std::uint64_t program_distance = 0;
  std::uint64_t linker_distance = 0;
  /// From here on the kernel is not to map anything any more; 0: nothing has to be done about that.
  std::uint64_t top = 0;
};

/// @param maps Of a process that has not run yet, ascending.
/// Nothing: it lies like that already, or there is no room.
[[nodiscard]] std::optional<AddressPlan> plan_addresses(std::span<const MapEntry> maps,
                                                        const LoadedImage& program,
                                                        const std::optional<LoadedImage>& linker);

/// The top right below which something begins; 0: it does not lie as such plans have it.
[[nodiscard]] std::uint64_t planned_top(std::uint64_t begin);

/// Whether they begin where such plans have them.
[[nodiscard]] bool are_planned(std::uint64_t program, std::uint64_t linker);

}  // namespace backtrail::tracee::cache
