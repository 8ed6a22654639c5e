// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One instruction of the program, as the translator sees it.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "arch/base/address.hpp"
#include "arch/insn.hpp"

namespace backtrail::arch::x86::translate {

/// Why an instruction is untranslatable: left to the CPU at its native address.
enum class UntranslatableReason : std::uint8_t {
  kNone,
  kUnreadable,  ///< There are no bytes.
  kUndecodable,
  kSystemCall,  ///< May change what translations depend on, or has an unknown number.
  kInterrupt,   ///< int3, int n, int1, ud2, hlt: raises an exception at its own address.
  kFarTransfer,
  kSegment,      ///< Uses the gs segment, or loads a segment register.
  kFlags,        ///< popf: may set the trap flag.
  kTransaction,  ///< xbegin
  kAddressSize,  ///< 67 or 66 prefixes on which CPUs differ, or 32-bit instruction-relative
                 ///< operands.
  kRegisters,    ///< Uses both reserved registers, with an operand that is out of reach.
  kBreakpoint,   ///< The debugger has set a breakpoint there.
  kMemory,       ///< In memory that must not be translated.
  kSection,      ///< Leads to an rseq critical section, or is inside of one.
  kFailedCall,   ///< Follows a system call that has failed with EFAULT.
};
[[nodiscard]] std::string_view to_string(UntranslatableReason reason);

enum class InsnClass : std::uint8_t {
  kCopy,
  kUntranslatable,
  kConditionalJump,
  kJumpIfRcxZero,
  kLoop,
  kJump,
  kCall,
  kIndirectJump,
  kIndirectCall,
  kReturn,
  kSystemCall,
  kLoadAddress,  ///< lea of an instruction-relative address
};

enum class Encoding : std::uint8_t { kLegacy, kVex2, kVex3, kEvex };

struct SourceInsn {
  TraceeAddr pc;
  std::array<std::uint8_t, kMaxInsnBytes> bytes{};
  std::uint8_t length = 0;
  InsnClass kind = InsnClass::kUntranslatable;
  UntranslatableReason reason = UntranslatableReason::kNone;
  TraceeAddr target;           ///< Target of a direct branch, or the instruction-relative address.
  std::uint8_t condition = 0;  ///< Low four bits of a Jcc opcode, or the opcode of LOOP or LOOPcc.
  std::uint16_t stack_bytes = 0;  ///< The operand of RET.
  bool address_size_prefix = false;
  bool uses_r10 = false;
  bool uses_r11 = false;
  bool writes_r10 = false;
  bool writes_r11 = false;
  bool relative = false;  ///< Has an instruction-relative memory operand at `target`.
  Encoding encoding = Encoding::kLegacy;
  std::uint8_t prefix_bytes = 0;  ///< Legacy prefixes before REX, VEX, EVEX or the opcode.
  std::uint8_t rex = 0;           ///< The REX byte, 0 = none.
  std::uint8_t modrm_offset = 0;
  std::uint8_t displacement_offset = 0;
  bool names_high_byte = false;  ///< Uses ah, bh, ch or dh, which excludes a REX prefix.
  bool reads_fs = false;
  bool writes_rax = false;
  bool uses_rcx = false;  ///< Needs the value of rcx: reads it, or leaves a part of it unchanged.
  bool sets_rcx = false;  ///< Overwrites rcx whatever its value; a few common instructions only.
  bool stores = false;    ///< Writes memory other than the thread's stack and static block.
  std::optional<std::uint32_t> sets_eax_to;
  std::optional<TraceeAddr> names;    ///< An address that the instruction puts into a register or
                                      ///< memory.
  std::uint8_t destination = 0;       ///< Destination register of kLoadAddress.
  std::uint8_t destination_bits = 0;  ///< Width of kLoadAddress: 32 or 64.
  bool operator==(const SourceInsn&) const = default;

  [[nodiscard]] TraceeAddr next() const { return pc + length; }
  [[nodiscard]] std::span<const std::uint8_t> view() const {
    return std::span{bytes}.first(length);
  }
};

/// Decodes the instruction at `pc`, of which `bytes` has up to kMaxInsnBytes.
[[nodiscard]] SourceInsn decode_source(TraceeAddr pc, std::span<const std::uint8_t> bytes);

/// Returns the instruction with its instruction-relative operand replaced by [r10] or [r11].
/// nullopt if the encoding has no room for that (ah and REX).
struct Rebased {
  std::array<std::uint8_t, kMaxInsnBytes + 2> bytes{};
  std::size_t length = 0;
};
[[nodiscard]] std::optional<Rebased> rebase(const SourceInsn& insn, bool base_is_r11);

/// Returns mov r10, OPERAND for the operand of an indirect call or jump, which must not be
/// instruction-relative.
[[nodiscard]] Rebased load_operand(const SourceInsn& insn);

}  // namespace backtrail::arch::x86::translate
