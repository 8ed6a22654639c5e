// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packs a superblock's pc map entries into two or three bytes each; there is one per instruction.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/cpu/translator.hpp"

namespace backtrail::tracee::cache {

/// Appends the packed pc map entries of the superblock with start pc `start`.
void pack_pc_map(std::span<const arch::cpu::translate::PcMapEntry> pc_map, TraceeAddr start,
                 std::vector<std::uint8_t>& out);

/// Returns the pc map entry for an offset in the superblock's code; nullopt before the first entry.
/// Damaged bytes yield some entry or none.
[[nodiscard]] std::optional<arch::cpu::translate::PcMapEntry> entry_at(
    std::span<const std::uint8_t> packed, TraceeAddr start, std::uint64_t offset);

}  // namespace backtrail::tracee::cache
