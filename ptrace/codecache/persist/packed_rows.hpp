#pragma once
/// @file
/// A superblock's rows in two or three bytes each: there are as many of them as instructions.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/x86/translate/superblock.hpp"

namespace backtrail::tracee::cache {

/// Appends the rows of the superblock that begins at `head`.
void pack_rows(std::span<const arch::x86::translate::PcRow> rows, TraceeAddr head,
               std::vector<std::uint8_t>& out);

/// The row that holds at an offset in the superblock's code; nothing in front of the first one.
/// Damaged bytes give some row or none.
[[nodiscard]] std::optional<arch::x86::translate::PcRow> row_at(
    std::span<const std::uint8_t> packed, TraceeAddr head, std::uint64_t offset);

}  // namespace backtrail::tracee::cache
