#pragma once
/// @file
/// Prefixes and opcode of an instruction, without its operands: enough to say where control goes.
/// Source: SDM vol. 2, "Instruction Format" and "Opcode Map"; APM vol. 3, "Instruction Encoding".

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "arch/insn.hpp"
#include "arch/isa.hpp"

namespace backtrail::arch::x86 {

/// CPUs differ in 64-bit mode on a near branch with an operand-size prefix (66) and no REX.W.
enum class NearBranchRule : std::uint8_t {
  kIntel,  ///< The prefix is ignored.
  kAmd,    ///< Displacement and instruction pointer are 16 bits wide.
};

/// The rule of the CPU this code runs on (CPUID vendor; no system call).
[[nodiscard]] NearBranchRule host_near_branch_rule();
/// Of the CPU that this code runs on, the extended one added (SDM vol. 2A, CPUID leaf 1).
[[nodiscard]] unsigned host_cpu_family();

enum class OpcodeMap : std::uint8_t {
  kPrimary,    ///< One byte.
  kSecondary,  ///< 0F xx.
  kTertiary,   ///< 0F 38 and 0F 3A; `byte` is that second byte. No branches there.
  kVector,     ///< Behind VEX, EVEX or XOP; `byte` is the first of those. No branches there.
};

struct Opcode {
  OpcodeMap map = OpcodeMap::kPrimary;
  std::uint8_t byte = 0;
  std::uint8_t end = 0;               ///< Offset of the byte behind the opcode.
  std::optional<std::uint8_t> modrm;  ///< That byte, where there is one.
  bool operand_size = false;          ///< Prefix 66.
  bool address_size = false;          ///< Prefix 67.
  bool lock = false;                  ///< Prefix F0.
  bool repeat = false;                ///< Prefix F3.
  bool repeat_not_equal = false;      ///< Prefix F2.
  bool rex_w = false;                 ///< In force: directly before the opcode.

  [[nodiscard]] bool is(OpcodeMap m, std::uint8_t b) const { return map == m && byte == b; }
  [[nodiscard]] unsigned modrm_reg() const { return (modrm.value_or(0) >> 3) & 7U; }
};

/// Nothing when the bytes end before the opcode does.
[[nodiscard]] std::optional<Opcode> scan_opcode(Isa isa, std::span<const std::uint8_t> bytes);

/// What the opcode means for control flow. `length` and `target` are left alone. An interrupt's
/// vector is not part of its opcode: `immediate` is the byte behind it.
[[nodiscard]] InsnFacts classify(const Opcode& opcode, std::optional<std::uint8_t> immediate);

/// A branch whose target is part of the instruction.
struct DirectBranch {
  std::uint8_t length = 0;  ///< Of the whole instruction; may exceed the bytes at hand.
  std::uint8_t displacement_bytes = 0;
  bool wraps_at_16_bits = false;
};

/// The shape of a direct near branch; nothing for all other opcodes.
[[nodiscard]] std::optional<DirectBranch> direct_branch(Isa isa, NearBranchRule rule,
                                                        const Opcode& opcode);

}  // namespace backtrail::arch::x86
