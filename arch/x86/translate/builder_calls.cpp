// SPDX-License-Identifier: Apache-2.0
// System calls that translated code makes itself.

#include "arch/x86/program_abi.hpp"
#include "arch/x86/translate/builder.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kShortJump = 0xeb;
constexpr std::uint8_t kJump = 0xe9;
constexpr std::uint8_t kJumpIfRcxZero = 0xe3;

// Constants of Linux (asm-generic/errno-base.h, asm/signal.h, asm-generic/signal-defs.h,
// asm/prctl.h, asm/unistd_64.h, asm-generic/resource.h, linux/ptrace.h).
constexpr std::uint8_t kFault = 14;  // EFAULT
constexpr std::uint32_t kSigTrap = 5;
constexpr std::uint32_t kSigSegv = 11;
constexpr std::uint32_t kSetFs = 0x1002;
constexpr std::uint32_t kBlock = 0;
constexpr std::uint32_t kUnblock = 1;
constexpr std::uint32_t kSetMask = 2;
constexpr std::uint32_t kFutex = 202;
constexpr std::uint32_t kOpenAtNumber = 257;
constexpr std::uint32_t kTraceMe = 0;
constexpr std::uint32_t kTraceAttach = 16;
constexpr std::uint32_t kTraceSeize = 0x4206;
constexpr std::uint32_t kAddressSpace = 9;  // RLIMIT_AS

/// Stands for a number that is known only when the call is made.
constexpr std::uint32_t kNumberInSlot = ~0U;

}  // namespace

Builder::CallMade Builder::system_call(const SourceInsn& insn) {
  const InlineSystemCalls* calls = options_.inline_system_calls;
  if (calls == nullptr || (eax_ && *eax_ >= calls->size())) return CallMade::kNot;
  const CallCheck check = eax_ ? (*calls)[*eax_] : CallCheck::kAnyNumber;
  if (check == CallCheck::kNever) return CallMade::kNot;
  if (check == CallCheck::kReturn) {
    return_from_handler(insn);
    return CallMade::kDoesNot;
  }
  open_r10(insn.pc);
  if (check != CallCheck::kAlways) check_call(insn, check);
  save_log(insn.pc);
  if (r11_live_ && r11_dirty_) {
    mark(insn.pc);
    emit_.store(Slot::kR11, Gpr::kR11);
  }
  r11_live_ = false;
  mark(insn.pc);
  emit_.bytes(insn.view());
  r11_live_ = true;
  r11_dirty_ = true;
  mark(insn.next(), kRcxIsPc);
  emit_.add_errno_to_rax_to_rcx(kFault);
  emit_.bytes({kJumpIfRcxZero});
  const std::uint32_t failed = emit_.open_rel8();
  emit_.bytes({kShortJump});
  const std::uint32_t done = emit_.open_rel8();
  emit_.bind8(failed);
  emit_.bytes({kJump});
  add_side_exit(insn, kRcxIsPc);
  side_exits_.back().failed_call = eax_.value_or(kNumberInSlot);
  emit_.bind8(done);
  emit_.move(Gpr::kRcx, insn.next().value());
  return CallMade::kComesBack;
}

void Builder::emit_failed_call(const SideExit& side) {
  const TraceeAddr next = side.insn.next();
  mark(next, kRcxIsPc);
  if (*side.failed_call == kNumberInSlot) {
    emit_.load(Gpr::kRcx, Slot::kNumber);
  } else {
    emit_.move(Gpr::kRcx, *side.failed_call);
  }
  emit_.store(Slot::kArgument, Gpr::kRcx);
  emit_.move(Gpr::kRcx, next.value());
  emit_exit({.kind = ExitKind::kUntranslatable,
             .reason = UntranslatableReason::kFailedCall,
             .executed = side.executed,
             .to = next},
            next);
}

void Builder::jump_if_rcx_zero_to(std::vector<std::uint32_t>& places) {
  emit_.bytes({kJumpIfRcxZero});
  const std::uint32_t zero = emit_.open_rel8();
  emit_.bytes({kShortJump});
  const std::uint32_t other = emit_.open_rel8();
  emit_.bind8(zero);
  jump_to(places);
  emit_.bind8(other);
}

void Builder::unless_rcx_zero_to(std::vector<std::uint32_t>& places) {
  emit_.bytes({kJumpIfRcxZero});
  const std::uint32_t zero = emit_.open_rel8();
  jump_to(places);
  emit_.bind8(zero);
}

void Builder::jump_to(std::vector<std::uint32_t>& places) {
  emit_.bytes({kJump});
  places.push_back(emit_.open_rel32());
}

void Builder::look_up(Policy part) {
  emit_.look_up_rcx(options_.table.value() + kEntryTableBytes + static_cast<std::uint32_t>(part));
}

void Builder::check_table(Policy part, std::vector<std::uint32_t>& made) {
  look_up(part);
  jump_if_rcx_zero_to(made);
}

void Builder::check_open(Gpr flags, std::vector<std::uint32_t>& made,
                         std::vector<std::uint32_t>& left) {
  emit_.move_byte_to_rcx(flags);
  look_up(Policy::kOpenFlags);
  unless_rcx_zero_to(left);
  emit_.move_second_byte_to_rcx(flags);
  check_table(Policy::kOpenFlags2, made);
}

void Builder::note_mask(std::vector<std::uint32_t>& made, std::vector<std::uint32_t>& left) {
  constexpr std::uint8_t kSetBytes = 8;
  emit_.load(Gpr::kRcx, Slot::kHolds);
  unless_rcx_zero_to(left);
  emit_.subtract_from_r10_to_rcx(kSetBytes);
  unless_rcx_zero_to(left);
  emit_.move_to_rcx(Gpr::kRsi);
  jump_if_rcx_zero_to(made);
  // Faults if the call would fail.
  emit_.load_rcx_at_rsi();
  emit_.store(Slot::kArgument, Gpr::kRcx);
  emit_.load_rcx_second_byte(Slot::kArgument);
  look_up(Policy::kSegvBit);
  emit_.store(Slot::kArgument, Gpr::kRcx);
  std::vector<std::uint32_t> sets;
  std::vector<std::uint32_t> unblocks;
  emit_.subtract_from_rdi_to_rcx(kSetMask);
  jump_if_rcx_zero_to(sets);
  emit_.subtract_from_rdi_to_rcx(kUnblock);
  jump_if_rcx_zero_to(unblocks);
  emit_.subtract_from_rdi_to_rcx(kBlock);
  unless_rcx_zero_to(left);
  emit_.load(Gpr::kRcx, Slot::kArgument);
  jump_if_rcx_zero_to(made);
  emit_.store(Slot::kSegvBlocked, Gpr::kRcx);
  jump_to(made);
  for (const std::uint32_t place : unblocks) emit_.bind(place);
  emit_.load(Gpr::kRcx, Slot::kArgument);
  jump_if_rcx_zero_to(made);
  emit_.move(Gpr::kRcx, 0);
  emit_.store(Slot::kSegvBlocked, Gpr::kRcx);
  jump_to(made);
  for (const std::uint32_t place : sets) emit_.bind(place);
  emit_.load(Gpr::kRcx, Slot::kArgument);
  emit_.store(Slot::kSegvBlocked, Gpr::kRcx);
  jump_to(made);
}

void Builder::check_number(std::vector<std::uint32_t>& made, std::vector<std::uint32_t>& left) {
  emit_.store(Slot::kNumber, Gpr::kRax);
  // The kernel uses 32 bits of the number.
  emit_.load_rcx_second_word(Slot::kNumber);
  unless_rcx_zero_to(left);
  emit_.load_rcx_second_byte(Slot::kNumber);
  look_up(Policy::kNumberHigh);
  unless_rcx_zero_to(left);
  emit_.move_eax_to_rcx();
  check_table(Policy::kNumbers, made);
  if ((*options_.inline_system_calls)[kOpenAtNumber] == CallCheck::kOpenAt) {
    std::vector<std::uint32_t> other;
    emit_.subtract_from_eax_to_rcx(kOpenAtNumber);
    unless_rcx_zero_to(other);
    check_open(Gpr::kRdx, made, left);
    jump_to(left);
    for (const std::uint32_t place : other) emit_.bind(place);
  }
  if ((*options_.inline_system_calls)[kFutex] != CallCheck::kUsualFutex) return;
  emit_.subtract_from_eax_to_rcx(kFutex);
  unless_rcx_zero_to(left);
  check_futex(made);
}

void Builder::check_futex(std::vector<std::uint32_t>& made) {
  for (const std::uint32_t operation : kUsualFutexes) {
    emit_.subtract_from_rsi_to_rcx(operation);
    jump_if_rcx_zero_to(made);
  }
}

void Builder::check_range(TraceeAddr pc, std::vector<std::uint32_t>& made,
                          std::vector<std::uint32_t>& left) {
  // The range must be shorter than 4 GiB and contain no executable memory.
  emit_.store(Slot::kArgument, Gpr::kRsi);
  emit_.load_rcx_high_half(Slot::kArgument);
  unless_rcx_zero_to(left);
  r10_live_ = false;
  mark(pc, kRcxInSlot);
  emit_.move(Gpr::kR10, options_.table.value() + kEntryTableBytes +
                            static_cast<std::uint32_t>(Policy::kRanges));
  const std::uint32_t begin = emit_.offset();
  emit_.load_rcx_at_r10(offsetof(PolicyRange, negated_begin));
  jump_if_rcx_zero_to(made);
  emit_.add_rdi_to_rcx();
  emit_.add_rsi_less_one_to_rcx();
  emit_.store(Slot::kArgument, Gpr::kRcx);
  emit_.load_rcx_high_byte(Slot::kArgument);
  emit_.bytes({kJumpIfRcxZero});
  const std::uint32_t ends_behind_begin = emit_.open_rel8();
  const std::uint32_t next = emit_.offset();
  emit_.advance_r10(sizeof(PolicyRange));
  emit_.jump_back(begin);
  emit_.bind8(ends_behind_begin);
  emit_.load_rcx_at_r10(offsetof(PolicyRange, negated_end));
  emit_.add_rdi_to_rcx();
  emit_.store(Slot::kArgument, Gpr::kRcx);
  emit_.load_rcx_high_byte(Slot::kArgument);
  emit_.bytes({kJumpIfRcxZero, static_cast<std::uint8_t>(next - (emit_.offset() + 2))});
}

void Builder::copy_frame() {
  constexpr std::uint8_t kWord = sizeof(std::uint64_t);
  emit_.move(Gpr::kR10, kFrameBytes - kWord);
  const std::uint32_t next = emit_.offset();
  // Faults where the call would fail.
  emit_.load_r11_at_rsp_r10();
  emit_.store_r11_at_r10(Slot::kFrame);
  emit_.move_to_rcx(Gpr::kR10);
  const std::uint32_t done = emit_.jump_if_rcx_zero();
  emit_.advance_r10(static_cast<std::uint8_t>(0 - kWord));
  emit_.jump_back(next);
  emit_.bind8(done);
}

/// The kernel is given a copy of the frame that leads to where translated code goes on. The program
/// has not returned before the call is made: what it will have then waits in slots of its own.
void Builder::return_from_handler(const SourceInsn& insn) {
  std::vector<std::uint32_t> left;
  close_r10(insn.pc);
  close_r11(insn.pc);
  put_rcx_away(insn.pc);
  emit_.load(Gpr::kRcx, Slot::kReturnStops);
  unless_rcx_zero_to(left);
  save_log(insn.pc);
  mark(insn.pc);
  copy_frame();
  emit_.load(Gpr::kR11, Slot::kLog);
  log_in_slot_ = false;
  mark(insn.pc);
  emit_.load_rcx_word(frame_slot(FrameField::kCs));
  emit_.subtract_from_rcx(kCodeSegment64);
  unless_rcx_zero_to(left);
  emit_.load_rcx_second_byte(frame_slot(FrameField::kFlags));
  look_up(Policy::kTrapFlag);
  unless_rcx_zero_to(left);
  emit_.load_rcx_second_byte(frame_slot(FrameField::kMask));
  look_up(Policy::kSegvBit);
  emit_.store(Slot::kReturnSegv, Gpr::kRcx);
  emit_.load(Gpr::kR10, frame_slot(FrameField::kRip));
  index_table();
  emit_.load_rcx_from_table(options_.table);
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
  give_id(exit);
  emit_.log_store(exit.id);
  block_.exits.push_back(exit);
  emit_.next_entry_to_rcx();
  emit_.store(frame_slot(FrameField::kR11), Gpr::kRcx);
  emit_.move_rsp_to_r10();
  emit_.load(Gpr::kRsp, Slot::kFrameAt);
  mark(insn.pc, kTargetInR10);
  emit_.bytes(insn.view());
  mark(insn.pc, kTargetInR10);
  for (const std::uint32_t place : left) emit_.bind(place);
  emit_exit({.kind = ExitKind::kUntranslatable,
             .reason = UntranslatableReason::kSystemCall,
             .to = insn.pc},
            insn.pc);
}

void Builder::check_call(const SourceInsn& insn, CallCheck check) {
  std::vector<std::uint32_t> made;  // jumps to where the call is made; falling through leaves
  std::vector<std::uint32_t> left;
  // From here on the slot holds rcx, too.
  mark(insn.pc);
  if (r10_dirty_) emit_.store(Slot::kR10, Gpr::kR10);
  r10_dirty_ = false;
  mark(insn.pc);
  emit_.store(Slot::kRcx, Gpr::kRcx);
  mark(insn.pc, kRcxInSlot);
  const auto unless_executable = [&] {
    std::vector<std::uint32_t> harmless;
    emit_.move_byte_to_rcx(Gpr::kRdx);
    check_table(Policy::kProtections, harmless);
    jump_to(left);
    for (const std::uint32_t place : harmless) emit_.bind(place);
  };
  const auto if_null = [&](Gpr argument) {
    emit_.move_to_rcx(argument);
    jump_if_rcx_zero_to(made);
  };
  switch (check) {
    case CallCheck::kMap:
      unless_executable();
      emit_.move_byte_to_rcx(Gpr::kR10);
      check_table(Policy::kMapFlags, made);
      check_range(insn.pc, made, left);
      break;
    case CallCheck::kProtect:
      unless_executable();
      check_range(insn.pc, made, left);
      break;
    case CallCheck::kRange:
      check_range(insn.pc, made, left);
      break;
    case CallCheck::kAction:
      emit_.subtract_from_rdi_to_rcx(kSigTrap);
      jump_if_rcx_zero_to(left);
      emit_.subtract_from_rdi_to_rcx(kSigSegv);
      jump_if_rcx_zero_to(left);
      jump_to(made);
      break;
    case CallCheck::kThreadBase:
      emit_.subtract_from_rdi_to_rcx(kSetFs);
      jump_if_rcx_zero_to(made);
      break;
    case CallCheck::kSignalMask:
      note_mask(made, left);
      break;
    case CallCheck::kLimit:
      emit_.subtract_from_rdi_to_rcx(kAddressSpace);
      jump_if_rcx_zero_to(left);
      jump_to(made);
      break;
    case CallCheck::kLimits:
      emit_.subtract_from_esi_to_rcx(kAddressSpace);
      jump_if_rcx_zero_to(left);
      if_null(Gpr::kRdx);
      break;
    case CallCheck::kNullFourth:
      if_null(Gpr::kR10);
      break;
    case CallCheck::kNullFifth:
      if_null(Gpr::kR8);
      break;
    case CallCheck::kNullSixth:
      if_null(Gpr::kR9);
      break;
    case CallCheck::kSignals:
      emit_.load(Gpr::kRcx, Slot::kHolds);
      jump_if_rcx_zero_to(made);
      break;
    case CallCheck::kUsualFutex:
      check_futex(made);
      break;
    case CallCheck::kOpen:
      check_open(Gpr::kRsi, made, left);
      break;
    case CallCheck::kOpenAt:
      check_open(Gpr::kRdx, made, left);
      break;
    case CallCheck::kWrite:
      emit_.move_byte_to_rcx(Gpr::kRdi);
      check_table(Policy::kWatchedFiles, made);
      break;
    case CallCheck::kTrace:
      for (const std::uint32_t request : {kTraceMe, kTraceAttach, kTraceSeize}) {
        emit_.subtract_from_rdi_to_rcx(request);
        jump_if_rcx_zero_to(left);
      }
      jump_to(made);
      break;
    case CallCheck::kAnyNumber:
      check_number(made, left);
      break;
    case CallCheck::kNever:
    case CallCheck::kAlways:
    case CallCheck::kReturn:
      break;
  }
  r10_live_ = false;
  mark(insn.pc, kRcxInSlot);
  for (const std::uint32_t place : left) emit_.bind(place);
  emit_.load(Gpr::kRcx, Slot::kRcx);
  const bool r11_live = r11_live_;
  const bool log_in_slot = log_in_slot_;
  emit_exit({.kind = ExitKind::kUntranslatable,
             .reason = UntranslatableReason::kSystemCall,
             .to = insn.pc},
            insn.pc);
  r11_live_ = r11_live;
  log_in_slot_ = log_in_slot;
  for (const std::uint32_t place : made) emit_.bind(place);
  mark(insn.pc, kRcxInSlot);
  emit_.load(Gpr::kR10, Slot::kR10);
  emit_.load(Gpr::kRcx, Slot::kRcx);
  r10_live_ = true;
}

}  // namespace backtrail::arch::x86::translate
