// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which registers of an instruction are worth recording.

#include <cstdint>

#include "arch/x86/translate/source_insn.hpp"

namespace backtrail::arch::x86::translate {

/// Sets of general registers; bit N is the register with encoding N.
struct ValueRegisters {
  /// Registers that form the address of a store, and the count of a repeated one. A base is left
  /// out if it is rsp or rbp, whose values mostly follow without a record.
  std::uint16_t of_stores = 0;
  std::uint16_t written = 0;
};

/// Returns both sets; empty if the instruction cannot be decoded.
[[nodiscard]] ValueRegisters value_registers(const SourceInsn& insn);

}  // namespace backtrail::arch::x86::translate
