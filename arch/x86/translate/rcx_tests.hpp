// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Comparisons that change no flag: rcx becomes zero or not, and JRCXZ decides.

#include <cstdint>
#include <vector>

#include "arch/x86/translate/emitter.hpp"

namespace backtrail::arch::x86::translate {

/// Offsets of the rel32s of jumps that are not bound yet.
using OpenJumps = std::vector<std::uint32_t>;

class RcxTests {
 public:
  /// Borrows the emitter. `table` is the look-up table, which the policy follows.
  RcxTests(Emitter& emit, TraceeAddr table) : emit_{emit}, table_{table} {}

  /// Sets rcx to zero if the register, or its low half, equals `value`; otherwise to something
  /// else.
  void compare(Gpr reg, std::uint32_t value);
  void compare32(Gpr reg, std::uint32_t value);
  /// Replaces rcx, an index, by what a part of the policy has for it.
  void look_up(Policy part);
  void jump_to(OpenJumps& jumps);
  void if_zero_to(OpenJumps& jumps);
  void unless_zero_to(OpenJumps& jumps);
  /// Makes all the jumps lead here.
  void bind(const OpenJumps& jumps);

 private:
  Emitter& emit_;
  TraceeAddr table_;
};

}  // namespace backtrail::arch::x86::translate
