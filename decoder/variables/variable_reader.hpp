// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads the variables of functions, as text.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arch/base/address.hpp"
#include "decoder/variables/frame_state.hpp"

namespace backtrail::decoder {

/// Texts come from the program's files and memory and are not escaped.
struct Variable {
  std::string name;                  ///< Empty for a parameter without a name.
  std::string type;                  ///< As in C, without namespaces; empty if unknown.
  std::optional<std::string> value;  ///< nullopt if any part that is shown is not known.
};

struct FrameVariables {
  std::vector<Variable> arguments;
  std::vector<Variable> locals;  ///< Variables of inner blocks first.
};

/// A variable and its place.
struct PlacedVariable {
  Variable variable;
  std::uint64_t bytes = 0;               ///< Size; 0 if unknown.
  std::optional<std::uint64_t> address;  ///< Set if it is in memory.
  std::optional<unsigned> reg;           ///< DWARF's number of the general register that it is in.
  std::string file;                      ///< Source file of a global variable, without folders.
};

/// A value is given only if debug information places the variable without doubt and every bit that
/// is shown is known.
class VariableReader {
 public:
  VariableReader() = default;
  VariableReader(const VariableReader&) = delete;
  VariableReader& operator=(const VariableReader&) = delete;
  virtual ~VariableReader() = default;

  /// Returns the variables of the functions at `place`, innermost inlined function first; empty
  /// without debug information.
  [[nodiscard]] virtual std::vector<FrameVariables> at(TraceeAddr place, FrameState& state) = 0;
  /// Returns the variables that a name may mean at `place`: one of the function, or else the global
  /// ones of the same source file (see find_global()). They have no place if that is in doubt.
  [[nodiscard]] virtual std::vector<PlacedVariable> find(TraceeAddr place, const std::string& name,
                                                         FrameState& state) = 0;
  /// Returns the global variables of the program and its libraries that a name may mean. It may
  /// begin with namespaces and classes, or with the source file: "file.cpp::space::name".
  [[nodiscard]] virtual std::vector<PlacedVariable> find_global(const std::string& name,
                                                                FrameState& state) = 0;
  /// Returns where the function that begins at `first` has stored its arguments; nullopt if it is
  /// not a function's first instruction or debug information does not tell.
  [[nodiscard]] virtual std::optional<TraceeAddr> after_prologue(TraceeAddr first) = 0;
  /// Returns the arguments of a call; nullopt without debug information, or if `first` is not the
  /// function's first instruction.
  /// @param entry  The state before the first instruction.
  /// @param after  The state at after_prologue(); null if it is unknown.
  [[nodiscard]] virtual std::optional<std::vector<Variable>> arguments(TraceeAddr first,
                                                                       FrameState& entry,
                                                                       FrameState* after) = 0;
  /// Returns what a call returned, if it is a number, a pointer or a reference, and the function
  /// returns it as the ABI says; the name is empty.
  /// @param state  The state after the call.
  [[nodiscard]] virtual std::optional<Variable> result(TraceeAddr first, FrameState& state) = 0;
  /// Returns why at() finds nothing at `place`, in words; empty if it finds something.
  [[nodiscard]] virtual std::string problem(TraceeAddr place) = 0;
  /// Returns the caller's registers by the unwind rules for `place`; null without rules or if the
  /// caller's stack pointer or pc is not known. The result borrows `state`.
  [[nodiscard]] virtual std::unique_ptr<FrameState> caller(TraceeAddr place, FrameState& state) = 0;
};

}  // namespace backtrail::decoder
