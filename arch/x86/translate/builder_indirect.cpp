// SPDX-License-Identifier: Apache-2.0
// Indirect branches and indirect-branch entries.

#include "arch/x86/translate/builder.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kJump = 0xe9;
constexpr std::uint8_t kJumpIfRcxZero = 0xe3;
constexpr std::uint8_t kLoop = 0xe2;
// First bytes of the code of subtract_from_r10_to_rcx(), for near addresses and for others.
constexpr std::array<std::uint8_t, 2> kNearIbEntry{0x49, 0x8d};
constexpr std::array<std::uint8_t, 2> kFarIbEntry{0x48, 0xb9};
constexpr std::uint32_t kFarIbEntryBytes = 14;

}  // namespace

std::array<std::uint8_t, 2> ib_entry_beginning(std::uint32_t after_entry) {
  return after_entry < kIbEntryOffset + kFarIbEntryBytes ? kNearIbEntry : kFarIbEntry;
}

void Builder::load_target(const SourceInsn& insn) {
  mark(insn.pc);
  if (!insn.relative) {
    const Rebased load = load_operand(insn);
    emit_.bytes(std::span{load.bytes}.first(load.length));
    return;
  }
  emit_.move(Gpr::kR10, insn.target.value());
  if (insn.reads_fs) emit_.bytes({0x64});
  emit_.bytes({0x4d, 0x8b, 0x12});  // mov r10, [r10]
}

bool Builder::indirect(const SourceInsn& insn) {
  if (insn.uses_r10) open_r10(insn.pc);
  if (insn.uses_r11) open_r11(insn.pc);
  // r10 keeps the value for the operand, but from here on only the slot matters.
  close_r10(insn.pc);
  load_target(insn);
  if (insn.relative && !insn.reads_fs) block_.pointers.push_back(insn.target);
  const bool calls = insn.kind == InsnClass::kIndirectCall;
  if (calls) {
    mark(insn.pc);
    emit_.push(insn.next().value());
    block_.returns.push_back(insn.next());
  }
  const std::int32_t stack_add = calls ? 8 : 0;
  const auto likely =
      source_.likely_target ? source_.likely_target(insn.pc) : std::optional<TraceeAddr>{};
  if (likely && may_follow(*likely)) {
    follow_if(insn, *likely, stack_add);
    if (calls) calls_.push_back(insn.next());
    return true;
  }
  finish_indirect(insn.pc, stack_add);
  return false;
}

bool Builder::return_from(const SourceInsn& insn) {
  std::optional<TraceeAddr> to;
  if (insn.stack_bytes == 0 && !calls_.empty()) {
    to = calls_.back();
    calls_.pop_back();
  } else if (source_.likely_target) {
    to = source_.likely_target(insn.pc);
  }
  close_r10(insn.pc);
  mark(insn.pc);
  emit_.bytes({0x41, 0x5a});  // pop r10
  std::int32_t stack_add = -8;
  if (to && insn.stack_bytes == 0 && may_follow(*to)) {
    follow_if(insn, *to, stack_add);
    return true;
  }
  if (insn.stack_bytes != 0) {
    mark(insn.pc, 0, stack_add);
    emit_.bytes({0x48, 0x8d, 0xa4, 0x24});  // lea rsp, [rsp+disp32]
    emit_.word32(insn.stack_bytes);
    stack_add -= insn.stack_bytes;
  }
  finish_indirect(insn.pc, stack_add);
  return false;
}

void Builder::follow_if(const SourceInsn& insn, TraceeAddr to, std::int32_t stack_add) {
  put_rcx_away(insn.pc, stack_add);
  mark(insn.pc, 0, stack_add);
  emit_.subtract_from_r10_to_rcx(to.value());
  emit_.bytes({kJumpIfRcxZero});
  const std::uint32_t matches = emit_.open_rel8();
  emit_.bytes({kJump});
  add_side_exit(insn);
  side_exits_.back().is_indirect = true;
  side_exits_.back().stack_add = stack_add;
  emit_.bind8(matches);
  block_.branches.emplace_back(insn.pc, to);
  pc_ = to;
}

void Builder::index_table() {
  if (options_.table_index == TableIndex::kMasked) {
    emit_.table_index(options_.table + kEntryTableBytes +
                      static_cast<std::uint32_t>(Policy::kIndexMask));
  } else {
    emit_.table_index();
  }
}

void Builder::finish_indirect(TraceeAddr from, std::int32_t stack_add, std::uint16_t executed) {
  close_r11(from, 0, stack_add);
  put_rcx_away(from, stack_add);
  mark(from, 0, stack_add);
  index_table();
  Exit exit{.kind = ExitKind::kIndirect, .executed = executed, .from = from};
  log(exit);
  mark(from, kCommitted | kTargetInR10);
  emit_.table_jump(options_.table);
  block_.exits.push_back(exit);
}

void Builder::emit_ib_entry() {
  rcx_in_slot_ = true;
  mark(block_.start, kCommitted | kTargetInR10);
  emit_.bytes({kJump});
  emit_.word32(static_cast<std::uint32_t>(*options_.conflict - (emit_.here() + 4)));
  // Difference 0 for JRCXZ; 1 for LOOP, which counts down.
  const bool loops = options_.ib_entry_test == IbEntryTest::kLoop;
  emit_.subtract_from_r10_to_rcx(block_.start.value() - (loops ? 1 : 0));
  constexpr std::uint8_t kShortBytes = 2;
  if (loops) {
    emit_.bytes({kLoop, static_cast<std::uint8_t>(0 - (emit_.offset() + kShortBytes))});
  } else {
    emit_.bytes({kJumpIfRcxZero, kShortBytes});
    emit_.jump_back(0);
  }
  block_.after_entry = emit_.offset();
  mark(block_.start);  // the next instruction may use r10
}

}  // namespace backtrail::arch::x86::translate
