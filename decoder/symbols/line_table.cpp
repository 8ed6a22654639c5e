// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/line_table.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

namespace backtrail::decoder {
namespace {

/// Limits nesting, because hostile files nest deeper than any compiler does.
constexpr int kMostNesting = 64;

/// An address range of a unit or function.
struct Range {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::size_t index = 0;
};

const Range* find_range(const std::vector<Range>& ranges, std::uint64_t address) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](std::uint64_t at, const Range& range) { return at < range.start; });
  if (after == ranges.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

void sort_ranges(std::vector<Range>& ranges) {
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Range& a, const Range& b) { return a.start < b.start; });
}

void add_ranges(Dwarf_Die* die, std::size_t index, std::vector<Range>& out) {
  constexpr int kMost = 100000;
  Dwarf_Addr base = 0;
  Dwarf_Addr start = 0;
  Dwarf_Addr end = 0;
  std::ptrdiff_t at = 0;
  for (int i = 0; i < kMost && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0; ++i) {
    // The linker places discarded code at 0.
    if (start != 0 && start < end) out.push_back({start, end, index});
  }
}

struct Unit {
  Dwarf_Die die{};
  bool read = false;
  bool nested_read = false;  ///< Functions within functions were read, too.
  std::vector<Dwarf_Die> functions;
  std::vector<Range> ranges;
};

void add_functions(Unit& unit, Dwarf_Die parent, int nesting) {
  Dwarf_Die die{};
  if (nesting > kMostNesting || dwarf_child(&parent, &die) != 0) return;
  do {
    switch (dwarf_tag(&die)) {
      case DW_TAG_subprogram:
        add_ranges(&die, unit.functions.size(), unit.ranges);
        unit.functions.push_back(die);
        break;
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
        add_functions(unit, die, nesting + 1);
        break;
      default:
        break;
    }
  } while (dwarf_siblingof(&die, &die) == 0);
}

/// Adds the functions that are described within other functions: those of local classes, lambdas.
void add_nested(Unit& unit, Dwarf_Die parent, bool in_function, int nesting, std::size_t& left) {
  Dwarf_Die die{};
  if (nesting > kMostNesting || dwarf_child(&parent, &die) != 0) return;
  do {
    if (left == 0) return;
    --left;
    const int tag = dwarf_tag(&die);
    const bool is_function = tag == DW_TAG_subprogram;
    if (is_function && in_function) {
      add_ranges(&die, unit.functions.size(), unit.ranges);
      unit.functions.push_back(die);
    }
    if (dwarf_haschildren(&die) == 1 && tag != DW_TAG_inlined_subroutine) {
      add_nested(unit, die, in_function || is_function, nesting + 1, left);
    }
  } while (dwarf_siblingof(&die, &die) == 0);
}

void read_nested_functions_of(Unit& unit) {
  constexpr std::size_t kMostEntries = 1U << 20U;
  unit.nested_read = true;
  std::size_t left = kMostEntries;
  add_nested(unit, unit.die, false, 0, left);
  sort_ranges(unit.ranges);
}

void read_functions_of(Unit& unit) {
  if (unit.read) return;
  unit.read = true;
  add_functions(unit, unit.die, 0);
  sort_ranges(unit.ranges);
}

std::string name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(die, kind, &attribute) == nullptr) continue;
    if (const char* name = dwarf_formstring(&attribute)) return name;
  }
  const char* name = dwarf_diename(die);
  return name == nullptr ? "" : name;
}

LineTable::Place call_place(Dwarf_Die* unit, Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Word line = 0;
  Dwarf_Word file = 0;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &line) != 0) return {};
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &file) != 0) return {};
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count) return {};
  return {dwarf_filesrc(files, file, nullptr, nullptr), static_cast<std::uint32_t>(line)};
}

/// Replaces `die` by its child that contains `address` and may contain inlined functions. Returns
/// false if there is none.
bool descend(Dwarf_Die& die, std::uint64_t address) {
  Dwarf_Die child{};
  if (dwarf_child(&die, &child) != 0) return false;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_inlined_subroutine:
      case DW_TAG_lexical_block:
      case DW_TAG_try_block:
      case DW_TAG_catch_block:
        if (dwarf_haspc(&child, address) == 1) {
          die = child;
          return true;
        }
        break;
      default:
        break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

}  // namespace

struct LineTable::Tables {
  Dwarf_Addr bias = 0;
  std::vector<Unit> units;
  std::vector<Range> ranges;

  Unit* unit_at(std::uint64_t address) {
    const Range* range = find_range(ranges, address);
    return range == nullptr ? nullptr : &units[range->index];
  }
  std::optional<Dwarf_Die> function_at(Unit& unit, std::uint64_t address) const {
    read_functions_of(unit);
    const Range* range = find_range(unit.ranges, address);
    if (range == nullptr && !unit.nested_read) {
      read_nested_functions_of(unit);
      range = find_range(unit.ranges, address);
    }
    if (range == nullptr) return std::nullopt;
    return unit.functions[range->index];
  }
};

LineTable::LineTable(Dwfl_Module* module) : tables_{new Tables} {
  if (dwfl_module_getdwarf(module, &tables_->bias) == nullptr) return;
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* die = nullptr; (die = dwfl_module_nextcu(module, die, &bias)) != nullptr;) {
    Unit unit;
    unit.die = *die;
    // A unit in a separate file (split DWARF) is found by its skeleton.
    Dwarf_Die split{};
    std::uint8_t kind = 0;
    if (dwarf_cu_info(die->cu, nullptr, &kind, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
        kind == DW_UT_skeleton && split.addr != nullptr) {
      unit.die = split;
    }
    add_ranges(die, tables_->units.size(), tables_->ranges);
    tables_->units.push_back(std::move(unit));
  }
  sort_ranges(tables_->ranges);
}

LineTable::~LineTable() {
  delete tables_;
}

LineTable::Place LineTable::line_at(std::uint64_t address) {
  address -= tables_->bias;
  Unit* unit = tables_->unit_at(address);
  if (unit == nullptr) return {};
  Dwarf_Line* line = dwarf_getsrc_die(&unit->die, address);
  int number = 0;
  if (line == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0) return {};
  return {dwarf_linesrc(line, nullptr, nullptr), static_cast<std::uint32_t>(number)};
}

std::vector<LineTable::Inlined> LineTable::inlined_at(std::uint64_t address) {
  std::vector<Inlined> out;
  address -= tables_->bias;
  Unit* unit = tables_->unit_at(address);
  if (unit == nullptr) return out;
  auto die = tables_->function_at(*unit, address);
  if (!die) return out;
  for (int i = 0; i < kMostNesting && descend(*die, address); ++i) {
    if (dwarf_tag(&*die) != DW_TAG_inlined_subroutine) continue;
    out.push_back({name_of(&*die), call_place(&unit->die, &*die)});
  }
  return out;
}

bool LineTable::has_units() const {
  return !tables_->units.empty();
}

LineTable::Scopes LineTable::scopes_at(std::uint64_t address) {
  Scopes out;
  out.bias = tables_->bias;
  address -= tables_->bias;
  Unit* unit = tables_->unit_at(address);
  if (unit == nullptr) return out;
  auto die = tables_->function_at(*unit, address);
  if (!die) return out;
  out.unit = unit->die;
  out.dies.push_back(*die);
  for (int i = 0; i < kMostNesting && descend(*die, address); ++i) out.dies.push_back(*die);
  return out;
}

std::vector<LineTable::Scopes> LineTable::units() const {
  std::vector<Scopes> out;
  out.reserve(tables_->units.size());
  for (const Unit& unit : tables_->units) {
    Scopes each;
    each.unit = unit.die;
    each.bias = tables_->bias;
    out.push_back(std::move(each));
  }
  return out;
}

std::string LineTable::function_at(std::uint64_t address) {
  address -= tables_->bias;
  Unit* unit = tables_->unit_at(address);
  if (unit == nullptr) return {};
  auto die = tables_->function_at(*unit, address);
  return die ? name_of(&*die) : std::string{};
}

}  // namespace backtrail::decoder
