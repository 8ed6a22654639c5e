// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/function_lines.hpp"

namespace backtrail::decoder {
namespace {

/// Rows of a function examined for the mark.
constexpr std::size_t kMostRows = 10000;

Dwarf_Addr address_of(Dwarf_Lines* lines, std::size_t index) {
  Dwarf_Addr address = 0;
  dwarf_lineaddr(dwarf_onesrcline(lines, index), &address);
  return address;
}

/// Returns the first row at or after `address`. Rows are sorted by address.
std::size_t first_row(Dwarf_Lines* lines, std::size_t count, Dwarf_Addr address) {
  std::size_t low = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    if (address_of(lines, low + half) < address) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

}  // namespace

std::optional<std::uint64_t> end_of_prologue(const Dwarf_Die& unit, const Dwarf_Die& function) {
  Dwarf_Die its_unit = unit;
  Dwarf_Die its_function = function;
  Dwarf_Addr first = 0;
  Dwarf_Addr end = 0;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_entrypc(&its_function, &first) != 0) return std::nullopt;
  if (dwarf_highpc(&its_function, &end) != 0) end = first + 1;
  if (dwarf_getsrclines(&its_unit, &lines, &count) != 0) return std::nullopt;
  std::optional<std::uint64_t> second;
  const std::size_t begin = first_row(lines, count, first);
  for (std::size_t i = begin; i < count && i - begin < kMostRows; ++i) {
    const Dwarf_Addr address = address_of(lines, i);
    if (address >= end) break;
    bool ends_prologue = false;
    dwarf_lineprologueend(dwarf_onesrcline(lines, i), &ends_prologue);
    if (ends_prologue) return address;
    if (!second && address > first) second = address;
  }
  return second;
}

}  // namespace backtrail::decoder
