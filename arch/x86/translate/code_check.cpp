// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/code_check.hpp"

#include <cstring>

namespace backtrail::arch::x86::translate {
namespace {

/// Bounds the bytes that are compared at every entry.
constexpr std::size_t kMostCheckedBytes = 96;
constexpr std::uint8_t kJump = 0xe9;
constexpr std::uint8_t kJumpBytes = 5;
constexpr std::uint8_t kJumpIfRcxZero = 0xe3;

/// Returns true if control leaves after the instruction, or if it may change the code itself.
bool ends_check(const SourceInsn& insn) {
  switch (insn.kind) {
    case InsnClass::kJump:
    case InsnClass::kCall:
    case InsnClass::kIndirectJump:
    case InsnClass::kIndirectCall:
    case InsnClass::kReturn:
    case InsnClass::kSystemCall:
      return true;
    default:
      return insn.stores;
  }
}

}  // namespace

UntranslatableReason CodeCheck::scan(const FollowedPath& path) {
  std::size_t bytes = 0;
  for (TraceeAddr pc = path.pc(); bytes < kMostCheckedBytes;) {
    if (!insns_.empty() && path.must_stop_before(pc)) break;
    const SourceInsn insn = path.examine(pc);
    if (insn.kind == InsnClass::kUntranslatable) {
      if (insns_.empty()) return insn.reason;
      break;
    }
    insns_.push_back(insn);
    bytes += insn.length;
    pc = insn.next();
    if (ends_check(insn)) break;
  }
  return UntranslatableReason::kNone;
}

/// Loads as many bytes from where rcx points into rcx.
void CodeCheck::load(std::size_t bytes) {
  Emitter& emit = writer_.emit();
  constexpr Memory kThere = Memory::at(Gpr::kRcx);
  switch (bytes) {
    case 8:
      return emit.load(Gpr::kRcx, kThere);
    case 4:
      return emit.load32(Gpr::kRcx, kThere);
    case 2:
      return emit.load16(Gpr::kRcx, kThere);
    default:
      return emit.load8(Gpr::kRcx, kThere);
  }
}

void CodeCheck::emit() {
  Emitter& emit = writer_.emit();
  std::vector<std::uint8_t> code;
  for (const SourceInsn& insn : insns_) {
    code.insert(code.end(), insn.view().begin(), insn.view().end());
  }
  const TraceeAddr start = writer_.block().start;
  writer_.close_rcx(start);
  for (std::size_t at = 0; at < code.size();) {
    std::size_t width = sizeof(std::uint64_t);
    while (width > code.size() - at) width /= 2;
    std::uint64_t value = 0;
    std::memcpy(&value, &code[at], width);
    emit.move(Gpr::kRcx, (start + at).value());
    load(width);
    emit.move(Gpr::kR10, 0 - value);
    emit.lea(Gpr::kRcx, Memory::sum(Gpr::kRcx, Gpr::kR10));
    emit.bytes({kJumpIfRcxZero, kJumpBytes, kJump});
    stale_jumps_.push_back(emit.open_rel32());
    at += width;
  }
}

void CodeCheck::emit_stale_exit() {
  if (stale_jumps_.empty()) return;
  for (const std::uint32_t jump : stale_jumps_) writer_.emit().bind(jump);
  writer_.go_back({.rcx_in_slot = true}, 0, 0);
  const TraceeAddr start = writer_.block().start;
  writer_.exit({.kind = ExitKind::kStale, .to = start}, start);
}

}  // namespace backtrail::arch::x86::translate
