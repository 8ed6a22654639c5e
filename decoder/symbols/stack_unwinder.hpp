#pragma once
/// @file
/// Unwinds stacks by call frame information (.eh_frame, .debug_frame), and by nothing else: where
/// there is none the stack ends, and says so.

#include "arch/x86/dwarf_registers.hpp"
#include "decoder/symbols/stack.hpp"

struct Dwfl;

namespace backtrail::decoder {

/// @param dwfl       With the modules that the thread runs in. Only one user of it may unwind.
/// @param registers  Of the innermost frame.
[[nodiscard]] Stack unwind_stack(Dwfl* dwfl, const arch::x86::DwarfRegisters& registers,
                                 const ReadMemory& memory);

}  // namespace backtrail::decoder
