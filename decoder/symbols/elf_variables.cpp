// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/elf_variables.hpp"

#include <elfutils/libdwfl.h>

#include "decoder/variables/function_frame.hpp"

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

}  // namespace

std::vector<FrameVariables> ElfVariables::at(TraceeAddr place, FrameState& state) {
  const Code code = find_(place);
  if (code.module == nullptr) return {};
  LineTable::Scopes scopes = code.lines->scopes_at(place.value());
  if (scopes.dies.empty()) return {};
  WorkLimit work{kMostWork};
  FunctionPlace function;
  function.unit = scopes.unit;
  function.scopes = std::move(scopes.dies);
  function.bias = scopes.bias;
  function.address = place.value() - scopes.bias;
  function.rules = rules_at(code.module, place.value());
  function.rules_at = [&](std::uint64_t address) {
    return rules_at(code.module, address + scopes.bias);
  };
  return FunctionFrame{function, state, work}.variables();
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
