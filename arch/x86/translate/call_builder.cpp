// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/call_builder.hpp"

#include "arch/x86/program_abi.hpp"
#include "arch/x86/translate/call_checker.hpp"
#include "arch/x86/translate/rcx_tests.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kShortJump = 0xeb;
constexpr std::uint8_t kJump = 0xe9;
constexpr std::uint8_t kFault = 14;  // EFAULT (asm-generic/errno-base.h)

}  // namespace

CallBuilder::Made CallBuilder::call(const SourceInsn& insn, std::optional<std::uint32_t> number) {
  const InlineSystemCalls* checks = options_.inline_system_calls;
  if (checks == nullptr || (number && *number >= checks->size())) return Made::kNot;
  const CallCheck check = number ? (*checks)[*number] : CallCheck::kAnyNumber;
  if (check == CallCheck::kNever) return Made::kNot;
  if (check == CallCheck::kReturn) {
    return_from_handler(insn);
    return Made::kDoesNot;
  }
  writer_.open_r10(insn.pc);
  if (check != CallCheck::kAlways) CallChecker{writer_, options_}.emit(insn, check);
  make(insn, number);
  return Made::kComesBack;
}

void CallBuilder::make(const SourceInsn& insn, std::optional<std::uint32_t> number) {
  writer_.save_log(insn.pc);
  writer_.put_r11_away(insn.pc);
  values_.before_call(insn);
  writer_.mark(insn.pc);
  emit_.bytes(insn.view());
  writer_.places().r11_live = true;
  writer_.places().r11_dirty = true;
  writer_.mark(insn.next(), kRcxIsPc);
  emit_.lea(Gpr::kRcx, Memory::at(Gpr::kRax, kFault));
  const std::uint32_t failed = emit_.jump_if_rcx_zero();
  emit_.bytes({kShortJump});
  const std::uint32_t done = emit_.open_rel8();
  emit_.bind8(failed);
  emit_.bytes({kJump});
  side_exits_.add(insn, kRcxIsPc).failed_call = number.value_or(kNumberInSlot);
  emit_.bind8(done);
  emit_.move(Gpr::kRcx, insn.next().value());
}

void CallBuilder::copy_frame() {
  constexpr std::uint8_t kWord = sizeof(std::uint64_t);
  emit_.move(Gpr::kR10, kFrameBytes - kWord);
  const std::uint32_t next = emit_.offset();
  // Faults where the call would fail.
  emit_.load(Gpr::kR11, Memory::sum(Gpr::kRsp, Gpr::kR10));
  emit_.store(Memory::of(Slot::kFrame, Gpr::kR10), Gpr::kR11);
  emit_.move(Gpr::kRcx, Gpr::kR10);
  const std::uint32_t done = emit_.jump_if_rcx_zero();
  emit_.lea(Gpr::kR10, Memory::at(Gpr::kR10, -kWord));
  emit_.jump_back(next);
  emit_.bind8(done);
}

/// The kernel is given a copy of the frame that leads to where translated code goes on. The program
/// has not returned before the call is made: what it will have then waits in slots of its own.
void CallBuilder::return_from_handler(const SourceInsn& insn) {
  RcxTests tests{emit_, options_.table};
  OpenJumps left;
  values_.before_handler_return(insn);
  writer_.close_r10(insn.pc);
  writer_.close_r11(insn.pc);
  writer_.close_rcx(insn.pc);
  emit_.load(Gpr::kRcx, Slot::kReturnStops);
  tests.unless_zero_to(left);
  writer_.save_log(insn.pc);
  writer_.mark(insn.pc);
  copy_frame();
  emit_.load(Gpr::kR11, Slot::kLog);
  writer_.places().log_in_slot = false;
  writer_.mark(insn.pc);
  emit_.load16(Gpr::kRcx, Memory::of(frame_slot(FrameField::kCs)));
  emit_.lea(Gpr::kRcx, Memory::at(Gpr::kRcx, -kCodeSegment64));
  tests.unless_zero_to(left);
  emit_.load8(Gpr::kRcx, Memory::of(frame_slot(FrameField::kFlags), 1));
  tests.look_up(Policy::kTrapFlag);
  tests.unless_zero_to(left);
  emit_.load8(Gpr::kRcx, Memory::of(frame_slot(FrameField::kMask), 1));
  tests.look_up(Policy::kSegvBit);
  emit_.store(Slot::kReturnSegv, Gpr::kRcx);
  emit_.load(Gpr::kR10, frame_slot(FrameField::kRip));
  writer_.index_table();
  emit_.load(Gpr::kRcx, Memory::entry(options_.table, Gpr::kRcx));
  emit_.store(Slot::kLanding, Gpr::kRcx);
  emit_.load(Gpr::kRcx, frame_slot(FrameField::kR10));
  emit_.store(Slot::kReturnR10, Gpr::kRcx);
  emit_.store(frame_slot(FrameField::kR10), Gpr::kR10);
  emit_.load(Gpr::kRcx, frame_slot(FrameField::kR11));
  emit_.store(Slot::kReturnR11, Gpr::kRcx);
  emit_.move(Gpr::kRcx, options_.returned.value());
  emit_.store(frame_slot(FrameField::kRip), Gpr::kRcx);
  // The entry counts from the call on, which advances the log pointer.
  Exit exit{.kind = ExitKind::kIndirect, .from = insn.pc};
  writer_.give_id(exit);
  emit_.store_value32(Memory::at(Gpr::kR11), exit.id);
  writer_.add_exit(exit);
  emit_.lea(Gpr::kRcx, Memory::at(Gpr::kR11, kLogEntryBytes));
  emit_.store(frame_slot(FrameField::kR11), Gpr::kRcx);
  emit_.move(Gpr::kR10, Gpr::kRsp);
  emit_.load(Gpr::kRsp, Slot::kFrameAt);
  writer_.mark(insn.pc, kTargetInR10);
  emit_.bytes(insn.view());
  writer_.mark(insn.pc, kTargetInR10);
  tests.bind(left);
  writer_.exit({.kind = ExitKind::kUntranslatable,
                .reason = UntranslatableReason::kSystemCall,
                .to = insn.pc},
               insn.pc);
}

}  // namespace backtrail::arch::x86::translate
