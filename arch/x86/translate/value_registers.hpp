// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What of an instruction is worth recording.

#include <cstdint>
#include <optional>

#include "arch/x86/translate/memory_operand.hpp"
#include "arch/x86/translate/source_insn.hpp"

namespace backtrail::arch::x86::translate {

/// The memory that an instruction overwrites.
struct StoredPlace {
  Memory at;                 ///< Without meaning if `is_relative`.
  bool is_relative = false;  ///< At SourceInsn::target.
  bool is_fs = false;        ///< Relative to the fs base.
  std::uint8_t bytes = 0;    ///< 0 if nothing is overwritten that can be recorded, or need be.

  [[nodiscard]] bool uses(Gpr reg) const { return at.base == reg || at.index == reg; }
};
/// The word that a push overwrites. That of a call is not worth recording: it is below the stack.
inline constexpr StoredPlace kPushedPlace{.at = Memory::at(Gpr::kRsp, -8), .bytes = 8};

/// Sets of general registers; bit N is the register with encoding N.
struct ValueRegisters {
  /// Registers that form the address of a store, and the count of a repeated one. A base is left
  /// out if it is rsp or rbp, whose values mostly follow without a record.
  std::uint16_t of_stores = 0;
  std::uint16_t written = 0;
  /// The registers from which the written value follows; nullopt if it follows from something else.
  std::optional<std::uint16_t> follows_from;
  /// rsp, by which the stack is known, if it is set to something that does not tell its old value.
  std::uint16_t lost_stack = 0;
  /// Registers that a pop restores at a function's end. Nothing else tells their old values.
  std::uint16_t lost = 0;
  /// Registers whose new values do not follow from what they were computed from: vector and mask
  /// registers, the time.
  std::uint16_t unrelated = 0;
  /// The old bytes of stores that a single load reads, and that do not follow from the new ones.
  StoredPlace stored;
};

/// Returns all of it; empty if the instruction cannot be decoded.
[[nodiscard]] ValueRegisters value_registers(const SourceInsn& insn);

}  // namespace backtrail::arch::x86::translate
