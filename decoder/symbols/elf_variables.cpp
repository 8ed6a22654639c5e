// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/elf_variables.hpp"

#include <algorithm>
#include <string_view>

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "decoder/variables/function_frame.hpp"
#include "decoder/variables/function_lines.hpp"
#include "decoder/variables/global_variables.hpp"
#include "decoder/variables/returned_value.hpp"
#include "decoder/variables/type_facts.hpp"

namespace backtrail::decoder {
namespace {

/// Debug entries visited and operations evaluated for one frame.
constexpr std::uint64_t kMostWork = 200'000;

UnwindRules rules_at(Dwfl_Module* module, std::uint64_t address) {
  for (const auto find : {dwfl_module_eh_cfi, dwfl_module_dwarf_cfi}) {
    Dwarf_Addr bias = 0;
    Dwarf_CFI* table = find(module, &bias);
    if (UnwindRules rules{table, address - bias}; rules.found()) return rules;
  }
  return {};
}

/// Returns the address of the function's first instruction, in the file.
std::optional<std::uint64_t> entry_of(FunctionPlace& place) {
  Dwarf_Addr address = 0;
  if (dwarf_entrypc(&place.scopes.front(), &address) != 0) return std::nullopt;
  return address;
}

/// Returns the name by which other modules may use a variable; empty if none can.
std::string symbol_of(Dwarf_Die die) {
  if (!has_flag(&die, DW_AT_external)) return {};
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(&die, name, &attribute) == nullptr) continue;
    if (const char* const text = dwarf_formstring(&attribute); text != nullptr) return text;
  }
  return {};
}

/// Returns true if a module defines a variable for itself and others. A program may have its own
/// copy of a library's variable, which both use.
bool defines(Dwfl_Module* module, const std::string& symbol) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym entry{};
    const char* const name = dwfl_module_getsym(module, i, &entry, nullptr);
    if (name == nullptr || entry.st_shndx == SHN_UNDEF) continue;
    const int type = GELF_ST_TYPE(entry.st_info);
    const bool is_shared = GELF_ST_BIND(entry.st_info) != STB_LOCAL &&
                           GELF_ST_VISIBILITY(entry.st_other) != STV_HIDDEN;
    if (!is_shared || type != STT_OBJECT) continue;
    // Names in the static symbol table end with the version.
    const std::string_view whole = name;
    if (whole.substr(0, whole.find('@')) == symbol) return true;
  }
  return false;
}

}  // namespace

std::vector<FrameVariables> ElfVariables::at(TraceeAddr place, FrameState& state) {
  const auto function = function_at(place);
  if (!function) return {};
  WorkLimit work{kMostWork};
  return FunctionFrame{*function, state, work}.variables();
}

std::vector<PlacedVariable> ElfVariables::find(TraceeAddr place, const std::string& name,
                                               FrameState& state) {
  const auto function = function_at(place);
  if (!function) return {};
  WorkLimit work{kMostWork};
  if (auto found = FunctionFrame{*function, state, work}.find(name)) return {std::move(*found)};
  std::vector<PlacedVariable> out;
  const Code code = find_(place);
  add_globals(code, code.lines->scopes_at(place.value()), name, state, out);
  return out;
}

std::vector<PlacedVariable> ElfVariables::find_global(const std::string& name, FrameState& state) {
  std::vector<PlacedVariable> out;
  for (const Code& code : modules_()) {
    for (const LineTable::Scopes& unit : code.lines->units()) {
      add_globals(code, unit, name, state, out);
    }
  }
  return out;
}

void ElfVariables::add_globals(const Code& code, const LineTable::Scopes& unit,
                               const std::string& name, FrameState& state,
                               std::vector<PlacedVariable>& out) {
  WorkLimit work{kMostWork};
  FunctionPlace place;
  place.unit = unit.unit;
  place.bias = unit.bias;
  for (GlobalVariable& variable : find_globals(unit.unit, name, work)) {
    PlacedVariable found = FunctionFrame{place, state, work}.global(variable);
    // Inline variables and those of templates are described in several units. After link-time
    // optimisation the source file's own entry has no place.
    const auto is_same = [&](const PlacedVariable& other) {
      const bool has_name = other.variable.name == found.variable.name && other.file == found.file;
      return found.address ? other.address == found.address : has_name;
    };
    if (std::ranges::any_of(out, is_same)) continue;
    std::erase_if(out, [&](const PlacedVariable& other) {
      return variable.has_place && !other.address && other.variable.name == found.variable.name &&
             other.file == found.file;
    });
    const std::string symbol = symbol_of(variable.die);
    const auto modules = modules_();
    const bool is_doubtful = std::ranges::any_of(modules, [&](const Code& other) {
      return other.module != code.module && !symbol.empty() && defines(other.module, symbol);
    });
    if (is_doubtful) found.address.reset();
    out.push_back(std::move(found));
  }
}

/// Returns the function at an address; nullopt without debug information.
std::optional<FunctionPlace> ElfVariables::function_at(TraceeAddr place) {
  const Code code = find_(place);
  if (code.module == nullptr) return std::nullopt;
  LineTable::Scopes scopes = code.lines->scopes_at(place.value());
  if (scopes.dies.empty()) return std::nullopt;
  FunctionPlace function;
  function.unit = scopes.unit;
  function.scopes = std::move(scopes.dies);
  function.bias = scopes.bias;
  function.address = place.value() - scopes.bias;
  function.rules = rules_at(code.module, place.value());
  function.rules_at = [module = code.module, bias = scopes.bias](std::uint64_t address) {
    return rules_at(module, address + bias);
  };
  return function;
}

std::optional<TraceeAddr> ElfVariables::after_prologue(TraceeAddr first) {
  auto function = function_at(first);
  if (!function || entry_of(*function) != function->address) return std::nullopt;
  const auto end = end_of_prologue(function->unit, function->scopes.front());
  if (!end) return std::nullopt;
  return TraceeAddr{*end + function->bias};
}

std::optional<std::vector<Variable>> ElfVariables::arguments(TraceeAddr first, FrameState& entry,
                                                             FrameState* after) {
  auto function = function_at(first);
  if (!function || entry_of(*function) != function->address) return std::nullopt;
  WorkLimit work{kMostWork};
  std::vector<Variable> out = FunctionFrame{*function, entry, work}.parameters();
  const auto later = after == nullptr ? std::nullopt : after_prologue(first);
  auto there = later ? function_at(*later) : std::nullopt;
  if (!there) return out;
  FunctionFrame frame{*there, *after, work};
  // Code that is not optimised keeps arguments in memory from there on.
  if (frame.is_optimised()) return out;
  const std::vector<Variable> stored = frame.parameters();
  for (std::size_t i = 0; i < out.size() && i < stored.size(); ++i) {
    if (!out[i].value) out[i].value = stored[i].value;
  }
  return out;
}

std::optional<Variable> ElfVariables::result(TraceeAddr first, FrameState& state) {
  auto function = function_at(first);
  if (!function || entry_of(*function) != function->address) return std::nullopt;
  WorkLimit work{kMostWork};
  return returned_value(*function, state, work);
}

std::string ElfVariables::problem(TraceeAddr place) {
  const Code code = find_(place);
  if (code.name.empty()) return {};
  if (code.module == nullptr) return code.name + " was not found";
  if (!code.lines->scopes_at(place.value()).dies.empty()) return {};
  return code.name + " has no debug information" +
         (code.lines->has_units() ? " about some functions" : "");
}

std::unique_ptr<FrameState> ElfVariables::caller(TraceeAddr place, FrameState& state) {
  const Code code = find_(place);
  if (code.module == nullptr) return nullptr;
  WorkLimit work{kMostWork};
  return rules_at(code.module, place.value()).caller(state, work);
}

}  // namespace backtrail::decoder
