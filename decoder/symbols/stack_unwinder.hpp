// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Unwinds stacks by call frame information (.eh_frame, .debug_frame) only. Without it the stack
/// ends there, with the reason in Stack::end.

#include "arch/cpu/dwarf_registers.hpp"
#include "decoder/symbols/stack.hpp"

struct Dwfl;

namespace backtrail::decoder {

/// @param dwfl       Has the modules that the thread runs in; must not be attached to other state.
/// @param registers  Registers of the innermost frame.
[[nodiscard]] Stack unwind_stack(Dwfl* dwfl, const arch::cpu::DwarfRegisters& registers,
                                 const ReadMemory& memory);

}  // namespace backtrail::decoder
