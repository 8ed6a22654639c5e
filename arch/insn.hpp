#pragma once
/// @file
/// What a trace needs to know of one instruction: its length, and where control goes after it.

#include <cstdint>
#include <span>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::arch {

/// How an instruction leaves itself. The classes are those that Intel PT tells apart
/// (SDM vol. 3, "Change of Flow Instruction Tracing", table of COFI types).
enum class InsnKind : std::uint8_t {
  kOther,            ///< Falls through.
  kConditionalJump,  ///< Jcc, LOOP*, JRCXZ and the like: falls through, or goes to `target`.
  kJump,             ///< Direct unconditional jump to `target`.
  kIndirectJump,
  kCall,  ///< Direct near call to `target`.
  kIndirectCall,
  kReturn,       ///< Near return.
  kSystemCall,   ///< SYSCALL, SYSENTER, INT 0x80: comes back behind itself, as a rule.
  kFarTransfer,  ///< Far jump, call or return, INT n, INT3, INTO, IRET, SYSRET, ...
};

/// Longest x86 instruction, in bytes (SDM vol. 2, "Instruction Format").
inline constexpr std::size_t kMaxInsnBytes = 15;

struct InsnFacts {
  std::uint8_t length = 0;  ///< In bytes; 0 when the bytes are no instruction (or are too few).
  InsnKind kind = InsnKind::kOther;
  /// A string instruction with a REP prefix: under single-step it traps after every iteration with
  /// pc unchanged, which is no branch.
  bool repeats = false;
  /// Pushes the flags (PUSHF*): under single-step the pushed image has TF set.
  bool pushes_flags = false;
  TraceeAddr target;  ///< Of direct jumps and calls, taken; else 0.

  [[nodiscard]] bool known() const { return length != 0; }
  /// Ends a block whenever it is executed, or may do so (conditional).
  [[nodiscard]] bool is_branch() const { return kind != InsnKind::kOther; }
};

/// Decodes the instruction at `pc`. `bytes` start at pc; at most kMaxInsnBytes of them are used.
/// Never fails: bytes that are no instruction give length 0. Instructions newer than Capstone are
/// decoded by a second decoder. Thread-safe.
[[nodiscard]] InsnFacts decode_insn(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes);

}  // namespace backtrail::arch
