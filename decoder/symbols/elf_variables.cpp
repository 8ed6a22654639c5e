// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/elf_variables.hpp"

#include <elfutils/libdwfl.h>

#include "decoder/variables/function_frame.hpp"
#include "decoder/variables/function_lines.hpp"
#include "decoder/variables/returned_value.hpp"

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

}  // namespace

std::vector<FrameVariables> ElfVariables::at(TraceeAddr place, FrameState& state) {
  const auto function = function_at(place);
  if (!function) return {};
  WorkLimit work{kMostWork};
  return FunctionFrame{*function, state, work}.variables();
}

std::optional<PlacedVariable> ElfVariables::find(TraceeAddr place, const std::string& name,
                                                 FrameState& state) {
  const auto function = function_at(place);
  if (!function) return std::nullopt;
  WorkLimit work{kMostWork};
  return FunctionFrame{*function, state, work}.find(name);
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
