// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Facts about DWARF types.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <elfutils/libdw.h>

#include "decoder/variables/work_limit.hpp"

namespace backtrail::decoder {

/// Returns an attribute that is a non-negative constant; nullopt if there is none.
[[nodiscard]] std::optional<std::uint64_t> constant_attribute(Dwarf_Die* die, unsigned name);
[[nodiscard]] bool has_flag(Dwarf_Die* die, unsigned name);
/// Returns true for an entry that only tells that a variable is defined elsewhere. A definition may
/// refer to such an entry.
[[nodiscard]] bool is_declaration(Dwarf_Die* die);
/// Returns the name in the debug information; empty if there is none.
[[nodiscard]] std::string die_name(Dwarf_Die* die);

/// Returns the type that a variable, member or type refers to; nullopt for void.
[[nodiscard]] std::optional<Dwarf_Die> type_of(Dwarf_Die* die);
/// Looks through typedefs, const, volatile and others of the kind. nullopt if there are too many.
[[nodiscard]] std::optional<Dwarf_Die> plain_type(Dwarf_Die type);

/// Returns the numbers of elements of an array, outermost first; empty if they are not constant.
[[nodiscard]] std::vector<std::uint64_t> array_counts(Dwarf_Die array, WorkLimit& work);
/// Returns a type's size in bytes; nullopt if it is not constant or the type is incomplete.
[[nodiscard]] std::optional<std::uint64_t> type_size(const Dwarf_Die& type, WorkLimit& work);

/// Returns a type's name as C writes it; a part that has no name is "...".
[[nodiscard]] std::string type_name(const Dwarf_Die& type);

/// Calls `take` for each child until it returns false.
template <class Take>
void for_each_child(Dwarf_Die parent, WorkLimit& work, const Take& take) {
  Dwarf_Die child{};
  if (dwarf_child(&parent, &child) != 0) return;
  do {
    if (!work.step() || !take(child)) return;
  } while (dwarf_siblingof(&child, &child) == 0);
}

}  // namespace backtrail::decoder
