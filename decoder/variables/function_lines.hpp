// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where a function's own code begins, by the line table.

#include <cstdint>
#include <optional>

#include <elfutils/libdw.h>

namespace backtrail::decoder {

/// Returns the address after the code that sets up the frame and stores the arguments: where the
/// compiler marked it, or else where the function's second row of lines begins. nullopt if the line
/// table does not tell.
[[nodiscard]] std::optional<std::uint64_t> end_of_prologue(const Dwarf_Die& unit,
                                                           const Dwarf_Die& function);

}  // namespace backtrail::decoder
