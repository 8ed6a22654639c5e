// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Scans the prefixes and opcode of an instruction without operands, which suffices to tell where
/// control goes. Source: SDM vol. 2, "Instruction Format" and "Opcode Map"; APM vol. 3,
/// "Instruction Encoding".

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "arch/insn.hpp"
#include "arch/isa.hpp"

namespace backtrail::arch::x86 {

/// The meaning in 64-bit mode of an operand-size prefix (66) without REX.W at a near branch, which
/// differs between CPUs.
enum class NearBranchRule : std::uint8_t {
  kIntel,  ///< The prefix is ignored.
  kAmd,    ///< Displacement and instruction pointer are 16 bits wide.
};

/// Returns the rule of the host CPU (by its CPUID vendor, without a system call).
[[nodiscard]] NearBranchRule host_near_branch_rule();
/// Returns the host CPU's family, including the extended family (SDM vol. 2A, CPUID leaf 1); 0 if
/// unknown.
[[nodiscard]] unsigned host_cpu_family();

enum class OpcodeMap : std::uint8_t {
  kPrimary,    ///< One byte.
  kSecondary,  ///< 0F xx.
  kTertiary,   ///< 0F 38 and 0F 3A; `byte` is that second byte. Contains no branches.
  kVector,     ///< After VEX, EVEX or XOP; `byte` is the first byte of the prefix. Contains no
               ///< branches.
};

struct Opcode {
  OpcodeMap map = OpcodeMap::kPrimary;
  std::uint8_t byte = 0;
  std::uint8_t end = 0;               ///< Offset of the byte after the opcode.
  std::optional<std::uint8_t> modrm;  ///< The byte after the opcode, if there is one.
  bool operand_size = false;          ///< Prefix 66.
  bool address_size = false;          ///< Prefix 67.
  bool lock = false;                  ///< Prefix F0.
  bool repeat = false;                ///< Prefix F3.
  bool repeat_not_equal = false;      ///< Prefix F2.
  bool rex_w = false;                 ///< In effect: directly before the opcode.

  [[nodiscard]] bool is(OpcodeMap m, std::uint8_t b) const { return map == m && byte == b; }
  [[nodiscard]] unsigned modrm_reg() const { return (modrm.value_or(0) >> 3) & 7U; }
};

/// Returns the opcode; nullopt if the bytes end before it does.
[[nodiscard]] std::optional<Opcode> scan_opcode(Isa isa, std::span<const std::uint8_t> bytes);

/// Classifies the opcode's control flow, and leaves `length` and `target` unset. `immediate` is the
/// byte after the opcode, for the vector of an interrupt instruction.
[[nodiscard]] InsnFacts classify(const Opcode& opcode, std::optional<std::uint8_t> immediate);

/// A branch whose target is part of the instruction.
struct DirectBranch {
  std::uint8_t length = 0;  ///< Length of the whole instruction; may exceed the available bytes.
  std::uint8_t displacement_bytes = 0;
  bool wraps_at_16_bits = false;
};

/// Returns the layout of a direct near branch; nullopt for all other opcodes.
[[nodiscard]] std::optional<DirectBranch> direct_branch(Isa isa, NearBranchRule rule,
                                                        const Opcode& opcode);

}  // namespace backtrail::arch::x86
