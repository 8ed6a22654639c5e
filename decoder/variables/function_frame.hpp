// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads the variables of one frame: a function and those inlined into it.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <elfutils/libdw.h>

#include "decoder/variables/global_variables.hpp"
#include "decoder/variables/location.hpp"
#include "decoder/variables/unwind_rules.hpp"
#include "decoder/variables/variable_reader.hpp"

namespace backtrail::decoder {

/// A place in a function, as the debug information describes it. For global variables only `unit`
/// and `bias` are needed.
struct FunctionPlace {
  Dwarf_Die unit{};
  /// The function, and what is within it around the place: blocks and inlined functions.
  std::vector<Dwarf_Die> scopes;
  std::uint64_t bias = 0;     ///< Added to addresses in the file.
  std::uint64_t address = 0;  ///< In the file.
  UnwindRules rules;
  /// Returns the rules for another address in the file; may be empty.
  std::function<UnwindRules(std::uint64_t)> rules_at;
};

class FunctionFrame {
 public:
  /// Borrows its arguments.
  FunctionFrame(const FunctionPlace& place, FrameState& state, WorkLimit& work);

  /// Returns the variables of the functions, innermost first.
  [[nodiscard]] std::vector<FrameVariables> variables();

  /// Returns the variable that a name means: of the innermost block that has one.
  [[nodiscard]] std::optional<PlacedVariable> find(const std::string& name);
  /// Returns a global variable with what its memory holds, also if optimised code may keep a newer
  /// value elsewhere.
  [[nodiscard]] PlacedVariable global(const GlobalVariable& variable);

  /// Returns the parameters of the function itself.
  [[nodiscard]] std::vector<Variable> parameters();

  /// Returns true if variables may be elsewhere than in memory, or the compiler is unknown.
  [[nodiscard]] bool is_optimised() const { return optimised_; }

  /// Returns where the function's code begins after it has stored its arguments, an address in the
  /// file; nullopt if the line table does not tell.
  [[nodiscard]] std::optional<std::uint64_t> after_prologue() const { return after_prologue_; }

 private:
  struct Found {
    Dwarf_Attribute attribute{};
    std::span<const Dwarf_Op> ops;
    bool is_list = false;  ///< Holds in a part of the code only.
  };
  void add_scope(Dwarf_Die scope, FrameVariables& out);
  [[nodiscard]] Variable read(Dwarf_Die die);
  [[nodiscard]] std::optional<Dwarf_Die> find_in(Dwarf_Die scope, const std::string& name);
  [[nodiscard]] PlacedVariable place_of(Dwarf_Die die);
  [[nodiscard]] std::optional<std::string> value_of(Dwarf_Die* die, const Dwarf_Die& type);
  [[nodiscard]] std::optional<std::string> constant_of(Dwarf_Attribute* attribute,
                                                       const Dwarf_Die& type);
  [[nodiscard]] std::optional<std::string> text_of(const Dwarf_Die& type,
                                                   const ObjectBytes& object);
  [[nodiscard]] std::optional<Found> find_location(Dwarf_Die* die) const;
  [[nodiscard]] static bool is_fixed(const Found& found);
  [[nodiscard]] bool is_doubtful(const Location& location, bool is_list);
  [[nodiscard]] std::optional<std::uint64_t> cfa();
  [[nodiscard]] std::optional<std::uint64_t> frame_base();
  [[nodiscard]] ExpressionContext context();
  void judge_compiler();

  const FunctionPlace& place_;
  FrameState& state_;
  WorkLimit& work_;
  std::optional<std::uint64_t> first_;  ///< Address of the function's first instruction.
  std::optional<std::uint64_t> after_prologue_;
  bool optimised_ = true;
  /// Variables without a location list may be elsewhere than the debug information says.
  bool moves_variables_ = false;
};

}  // namespace backtrail::decoder
