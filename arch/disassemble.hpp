#pragma once
/// @file
/// Instructions as text, for people.

#include <cstdint>
#include <span>
#include <string>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::arch {

/// The instruction at `pc` in AT&T's syntax, which is gdb's default; `bytes` start there. Bytes
/// that the disassembler does not know stand as ".byte ..."; no bytes give an empty text.
[[nodiscard]] std::string disassemble(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes);

}  // namespace backtrail::arch
