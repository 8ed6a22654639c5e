#pragma once
/// @file
/// Lengths and texts of instructions by the two disassemblers. Their headers stay behind this one.

#include <cstdint>
#include <span>
#include <string>

#include "arch/isa.hpp"
#include "arch/x86/opcode.hpp"

namespace backtrail::arch::x86 {

/// Length in bytes by Capstone; 0 when it does not know the bytes. Thread-safe.
[[nodiscard]] std::uint8_t capstone_length(Isa isa, std::span<const std::uint8_t> bytes);

/// Length in bytes by Zydis; 0 when it does not know the bytes. Thread-safe.
[[nodiscard]] std::uint8_t zydis_length(Isa isa, NearBranchRule rule,
                                        std::span<const std::uint8_t> bytes);

/// The instruction in AT&T's syntax by Zydis, which knows more of AVX-512; empty when it does not
/// know the bytes.
[[nodiscard]] std::string zydis_text(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes);

/// True where Capstone 4.0.2 is known to give a wrong length, or to accept what a CPU refuses.
[[nodiscard]] bool capstone_is_wrong_about(const Opcode& opcode);

/// decode_insn() for a CPU with the given rule.
[[nodiscard]] InsnFacts decode(Isa isa, NearBranchRule rule, TraceeAddr pc,
                               std::span<const std::uint8_t> bytes);

}  // namespace backtrail::arch::x86
