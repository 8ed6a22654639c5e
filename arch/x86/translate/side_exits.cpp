// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/side_exits.hpp"

namespace backtrail::arch::x86::translate {

SideExit& SideExits::add(const SourceInsn& insn, std::uint8_t more_flags) {
  return exits_.emplace_back(
      SideExit{.rel32 = writer_.emit().open_rel32(),
               .insn = insn,
               .passed = writer_.passed(),
               .executed = static_cast<std::uint16_t>(writer_.block().instructions + 1),
               .values = writer_.values(),
               .places = writer_.places(),
               .more_flags = more_flags});
}

void SideExits::emit() {
  for (const SideExit& side : exits_) {
    writer_.emit().bind(side.rel32);
    writer_.go_back(side.places, side.passed, side.values);
    emit_one(side);
  }
}

void SideExits::emit_one(const SideExit& side) {
  const SourceInsn& insn = side.insn;
  if (side.is_indirect) {
    writer_.exit_indirectly(insn.pc, side.stack_add, side.executed);
  } else if (side.failed_call) {
    emit_failed_call(side);
  } else if (side.falls_through) {
    writer_.exit({.kind = ExitKind::kContinue, .executed = side.executed, .to = insn.next()},
                 insn.next());
  } else {
    writer_.exit(
        {.kind = ExitKind::kDirect, .executed = side.executed, .from = insn.pc, .to = insn.target},
        insn.pc, side.more_flags);
  }
}

void SideExits::emit_failed_call(const SideExit& side) {
  Emitter& emit = writer_.emit();
  const TraceeAddr next = side.insn.next();
  writer_.mark(next, kRcxIsPc);
  if (*side.failed_call == kNumberInSlot) {
    emit.load(Gpr::kRcx, Slot::kNumber);
  } else {
    emit.move(Gpr::kRcx, *side.failed_call);
  }
  emit.store(Slot::kArgument, Gpr::kRcx);
  emit.move(Gpr::kRcx, next.value());
  writer_.exit({.kind = ExitKind::kUntranslatable,
                .reason = UntranslatableReason::kFailedCall,
                .executed = side.executed,
                .to = next},
               next);
}

}  // namespace backtrail::arch::x86::translate
