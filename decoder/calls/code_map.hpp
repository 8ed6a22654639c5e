// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Maps addresses to functions.

#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

/// How a function changes the stack for the code that runs after it. No call on the stack before
/// the switch made the calls that follow it.
enum class StackSwitch : std::uint8_t {
  kNone,
  kLeaves,  ///< Its callee runs on another stack (Go's mcall).
  kGoesOn,  ///< Jumps to where another stack was left or begins; its own stack is abandoned.
  kSwaps,   ///< Leaves its stack for another one and is resumed later (swapcontext).
};

struct FunctionRef {
  /// Identifies the function; equal for all its parts. 0 if unknown.
  std::uint32_t id = 0;
  TraceeAddr entry;
  /// The function is a stub that leads to another one: a PLT entry or the dynamic linker's lazy
  /// binding. Calls through it count as calls of the other function.
  bool stub = false;
  StackSwitch stack_switch = StackSwitch::kNone;

  [[nodiscard]] bool known() const { return id != 0; }
};

class CodeMap {
 public:
  virtual ~CodeMap() = default;
  virtual FunctionRef at(TraceeAddr address) = 0;
};

}  // namespace backtrail::decoder
