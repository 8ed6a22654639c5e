// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/indirect_builder.hpp"

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

void IndirectBuilder::entry(TraceeAddr conflict, IbEntryTest test) {
  writer_.places().rcx_in_slot = true;
  writer_.mark(writer_.block().start, kCommitted | kTargetInR10);
  emit_.bytes({kJump});
  emit_.word32(static_cast<std::uint32_t>(conflict - (emit_.here() + 4)));
  // Difference 0 for JRCXZ; 1 for LOOP, which counts down.
  const bool loops = test == IbEntryTest::kLoop;
  emit_.subtract_from_r10_to_rcx(writer_.block().start.value() - (loops ? 1 : 0));
  constexpr std::uint8_t kShortBytes = 2;
  if (loops) {
    emit_.bytes({kLoop, static_cast<std::uint8_t>(0 - (emit_.offset() + kShortBytes))});
  } else {
    emit_.bytes({kJumpIfRcxZero, kShortBytes});
    emit_.jump_back(0);
  }
  writer_.block().after_entry = emit_.offset();
  writer_.mark(writer_.block().start);  // the next instruction may use r10
}

void IndirectBuilder::load_target(const SourceInsn& insn) {
  writer_.mark(insn.pc);
  if (!insn.relative) {
    const Rebased load = load_operand(insn);
    emit_.bytes(std::span{load.bytes}.first(load.length));
    return;
  }
  emit_.move(Gpr::kR10, insn.target.value());
  if (insn.reads_fs) emit_.bytes({0x64});
  emit_.bytes({0x4d, 0x8b, 0x12});  // mov r10, [r10]
}

bool IndirectBuilder::branch(const SourceInsn& insn) {
  const bool calls = insn.kind == InsnClass::kIndirectCall;
  writer_.open_for(insn);
  // r10 keeps the value for the operand, but from here on only the slot matters.
  writer_.close_r10(insn.pc);
  load_target(insn);
  if (insn.relative && !insn.reads_fs) writer_.block().pointers.push_back(insn.target);
  if (calls) writer_.push_return(insn);
  const std::int32_t stack_add = calls ? 8 : 0;
  const auto likely = path_.likely_target(insn.pc);
  if (likely && path_.may_follow(*likely)) {
    follow_if(insn, *likely, stack_add);
    if (calls) path_.enter_call(insn.next());
    return true;
  }
  writer_.exit_indirectly(insn.pc, stack_add);
  return false;
}

bool IndirectBuilder::return_from(const SourceInsn& insn) {
  auto to = insn.stack_bytes == 0 ? path_.leave_call() : std::nullopt;
  if (!to) to = path_.likely_target(insn.pc);
  writer_.close_r10(insn.pc);
  writer_.mark(insn.pc);
  emit_.bytes({0x41, 0x5a});  // pop r10
  std::int32_t stack_add = -8;
  if (to && insn.stack_bytes == 0 && path_.may_follow(*to)) {
    follow_if(insn, *to, stack_add);
    return true;
  }
  if (insn.stack_bytes != 0) {
    writer_.mark(insn.pc, 0, stack_add);
    emit_.lea(Gpr::kRsp, Memory::far(Gpr::kRsp, insn.stack_bytes));
    stack_add -= insn.stack_bytes;
  }
  writer_.exit_indirectly(insn.pc, stack_add);
  return false;
}

void IndirectBuilder::follow_if(const SourceInsn& insn, TraceeAddr to, std::int32_t stack_add) {
  writer_.close_rcx(insn.pc, stack_add);
  writer_.mark(insn.pc, 0, stack_add);
  emit_.subtract_from_r10_to_rcx(to.value());
  const std::uint32_t matches = emit_.jump_if_rcx_zero();
  emit_.bytes({kJump});
  SideExit& exit = side_exits_.add(insn);
  exit.is_indirect = true;
  exit.stack_add = stack_add;
  emit_.bind8(matches);
  writer_.take_branch(insn.pc, to);
  path_.go_to(to);
}

}  // namespace backtrail::arch::x86::translate
