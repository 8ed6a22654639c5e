// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads variables by the DWARF of ELF modules.

#include <functional>
#include <string>
#include <vector>

#include "decoder/symbols/line_table.hpp"
#include "decoder/variables/function_frame.hpp"
#include "decoder/variables/variable_reader.hpp"

namespace backtrail::decoder {

class ElfVariables final : public VariableReader {
 public:
  /// The module that has the code at an address; null pointers if there is none.
  struct Code {
    Dwfl_Module* module = nullptr;
    LineTable* lines = nullptr;
    std::string name;  ///< File name of the module, also if it could not be read.
  };
  using FindCode = std::function<Code(TraceeAddr)>;
  /// Returns all modules that could be read.
  using FindModules = std::function<std::vector<Code>()>;

  ElfVariables(FindCode find, FindModules modules)
      : find_{std::move(find)}, modules_{std::move(modules)} {}

  std::vector<FrameVariables> at(TraceeAddr place, FrameState& state) override;
  std::vector<PlacedVariable> find(TraceeAddr place, const std::string& name,
                                   FrameState& state) override;
  std::vector<PlacedVariable> find_global(const std::string& name, FrameState& state) override;
  std::optional<TraceeAddr> after_prologue(TraceeAddr first) override;
  std::optional<std::vector<Variable>> arguments(TraceeAddr first, FrameState& entry,
                                                 FrameState* after) override;
  std::optional<Variable> result(TraceeAddr first, FrameState& state) override;
  std::string problem(TraceeAddr place) override;
  std::unique_ptr<FrameState> caller(TraceeAddr place, FrameState& state) override;

 private:
  std::optional<FunctionPlace> function_at(TraceeAddr place);
  /// Adds the global variables of a unit, without those that are there already.
  void add_globals(const Code& code, const LineTable::Scopes& unit, const std::string& name,
                   FrameState& state, std::vector<PlacedVariable>& out);

  FindCode find_;
  FindModules modules_;
};

}  // namespace backtrail::decoder
