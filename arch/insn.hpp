// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The facts of one instruction that a trace needs: its length, and where control goes next.

#include <cstdint>
#include <span>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::arch {

/// How control leaves an instruction. The classes are those of Intel PT (SDM vol. 3, "Change of
/// Flow Instruction Tracing", table of COFI types).
enum class InsnKind : std::uint8_t {
  kOther,            ///< Falls through.
  kConditionalJump,  ///< Jcc, LOOP*, JRCXZ and others: falls through or goes to `target`.
  kJump,             ///< Direct unconditional jump to `target`.
  kIndirectJump,
  kCall,  ///< Direct near call to `target`.
  kIndirectCall,
  kReturn,       ///< Near return.
  kSystemCall,   ///< SYSCALL, SYSENTER, INT 0x80: normally returns to the next instruction.
  kFarTransfer,  ///< Far jump, call or return, INT n, INT3, INTO, IRET, SYSRET, ...
};

/// Longest x86 instruction, in bytes (SDM vol. 2, "Instruction Format").
inline constexpr std::size_t kMaxInsnBytes = 15;

struct InsnFacts {
  std::uint8_t length = 0;  ///< In bytes; 0 if the bytes are no instruction, or too few.
  InsnKind kind = InsnKind::kOther;
  /// A string instruction with a REP prefix. A single step traps after every iteration with pc
  /// unchanged, which is no branch.
  bool repeats = false;
  TraceeAddr target;  ///< Target of a direct jump or call if taken; otherwise 0.

  [[nodiscard]] bool known() const { return length != 0; }
  /// Returns true if the instruction ends a block, always or conditionally.
  [[nodiscard]] bool is_branch() const { return kind != InsnKind::kOther; }
};

/// Decodes the instruction at `pc`. `bytes` begin at `pc`; at most kMaxInsnBytes are used. Bytes
/// that are no instruction give length 0. A second decoder handles instructions that Capstone does
/// not know. Thread-safe.
[[nodiscard]] InsnFacts decode_insn(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes);

}  // namespace backtrail::arch
