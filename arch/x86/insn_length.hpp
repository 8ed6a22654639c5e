// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Lengths and texts of instructions from the two disassemblers, whose headers are included nowhere
/// else.

#include <cstdint>
#include <span>
#include <string>

#include "arch/isa.hpp"
#include "arch/x86/opcode.hpp"

namespace backtrail::arch::x86 {

/// Returns the length by Capstone, in bytes; 0 if it does not know the instruction. Thread-safe.
[[nodiscard]] std::uint8_t capstone_length(Isa isa, std::span<const std::uint8_t> bytes);

/// Returns the length by Zydis, in bytes; 0 if it does not know the instruction. Thread-safe.
[[nodiscard]] std::uint8_t zydis_length(Isa isa, NearBranchRule rule,
                                        std::span<const std::uint8_t> bytes);

/// Returns the instruction in AT&T syntax by Zydis, which knows more of AVX-512; empty if unknown.
[[nodiscard]] std::string zydis_text(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes);

/// Returns true if Capstone 4.0.2 is known to return a wrong length, or to accept what a CPU
/// rejects.
[[nodiscard]] bool capstone_is_wrong_about(const Opcode& opcode);

/// Decodes as decode_insn() for a CPU with the given rule.
[[nodiscard]] InsnFacts decode(Isa isa, NearBranchRule rule, TraceeAddr pc,
                               std::span<const std::uint8_t> bytes);

}  // namespace backtrail::arch::x86
