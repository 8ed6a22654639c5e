// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/call_checker.hpp"

#include <array>
#include <cstddef>

namespace backtrail::arch::x86::translate {
namespace {

// Constants of Linux (asm/signal.h, asm-generic/signal-defs.h, asm/prctl.h, asm/unistd_64.h,
// asm-generic/resource.h, asm-generic/mman-common.h, linux/ptrace.h).
constexpr std::uint32_t kReadExecute = 5;  // PROT_READ | PROT_EXEC
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

constexpr std::uint8_t kJumpIfRcxZero = 0xe3;

/// End of the name of files that show affinities: /proc/PID/status.
constexpr std::array<std::uint8_t, 2> kShowsAffinity{'u', 's'};

}  // namespace

void CallChecker::emit(const SourceInsn& insn, CallCheck check) {
  RegisterPlaces& places = writer_.places();
  // From here on the slot holds rcx, too.
  writer_.mark(insn.pc);
  if (places.r10_dirty) emit_.store(Slot::kR10, Gpr::kR10);
  places.r10_dirty = false;
  writer_.mark(insn.pc);
  emit_.store(Slot::kRcx, Gpr::kRcx);
  writer_.mark(insn.pc, kRcxInSlot);
  test(insn.pc, check);
  places.r10_live = false;
  writer_.mark(insn.pc, kRcxInSlot);
  tests_.bind(left_);
  emit_.load(Gpr::kRcx, Slot::kRcx);
  const RegisterPlaces before_exit = places;
  writer_.exit({.kind = ExitKind::kUntranslatable,
                .reason = UntranslatableReason::kSystemCall,
                .to = insn.pc},
               insn.pc);
  places = before_exit;
  tests_.bind(made_);
  writer_.mark(insn.pc, kRcxInSlot);
  emit_.load(Gpr::kR10, Slot::kR10);
  emit_.load(Gpr::kRcx, Slot::kRcx);
  places.r10_live = true;
}

void CallChecker::test(TraceeAddr pc, CallCheck check) {
  switch (check) {
    case CallCheck::kMap:
      unless_writable_code();
      emit_.move8(Gpr::kRcx, Gpr::kR10);
      made_by_table(Policy::kMapFlags);
      return range(pc);
    case CallCheck::kProtect:
      unless_executable();
      return range(pc);
    case CallCheck::kRange:
      return range(pc);
    case CallCheck::kAction:
      return action();
    case CallCheck::kThreadBase:
      tests_.compare32(Gpr::kRdi, kSetFs);
      return tests_.if_zero_to(made_);
    case CallCheck::kSignalMask:
      return signal_mask();
    case CallCheck::kLimit:
      return limit();
    case CallCheck::kLimits:
      tests_.compare32(Gpr::kRsi, kAddressSpace);
      tests_.if_zero_to(left_);
      return made_if_null(Gpr::kRdx);
    case CallCheck::kNullFourth:
      return made_if_null(Gpr::kR10);
    case CallCheck::kNullFifth:
      return made_if_null(Gpr::kR8);
    case CallCheck::kNullSixth:
      return made_if_null(Gpr::kR9);
    case CallCheck::kSignals:
      emit_.load(Gpr::kRcx, Slot::kHolds);
      return tests_.if_zero_to(made_);
    case CallCheck::kUsualFutex:
      return futex();
    case CallCheck::kOpen:
      return open(pc, Gpr::kRdi, Gpr::kRsi);
    case CallCheck::kOpenAt:
      return open(pc, Gpr::kRsi, Gpr::kRdx);
    case CallCheck::kWrite:
      emit_.move8(Gpr::kRcx, Gpr::kRdi);
      return made_by_table(Policy::kWatchedFiles);
    case CallCheck::kRseq:
      return rseq();
    case CallCheck::kTrace:
      return trace();
    case CallCheck::kAnyNumber:
      return number(pc);
    case CallCheck::kNever:
    case CallCheck::kAlways:
    case CallCheck::kReturn:
      return;
  }
}

void CallChecker::by_table(Policy part, OpenJumps& jumps) {
  tests_.look_up(part);
  tests_.if_zero_to(jumps);
}

void CallChecker::made_if_null(Gpr argument) {
  emit_.move(Gpr::kRcx, argument);
  tests_.if_zero_to(made_);
}

void CallChecker::unless_executable() {
  OpenJumps harmless;
  emit_.move8(Gpr::kRcx, Gpr::kRdx);
  by_table(Policy::kProtections, harmless);
  tests_.jump_to(left_);
  tests_.bind(harmless);
}

void CallChecker::unless_writable_code() {
  OpenJumps harmless;
  tests_.compare32(Gpr::kRdx, kReadExecute);
  tests_.if_zero_to(harmless);
  unless_executable();
  tests_.bind(harmless);
}

void CallChecker::action() {
  for (const std::uint32_t signal : {kSigTrap, kSigSegv}) {
    tests_.compare32(Gpr::kRdi, signal);
    tests_.if_zero_to(left_);
  }
  tests_.jump_to(made_);
}

void CallChecker::limit() {
  tests_.compare32(Gpr::kRdi, kAddressSpace);
  tests_.if_zero_to(left_);
  tests_.jump_to(made_);
}

void CallChecker::trace() {
  for (const std::uint32_t request : {kTraceMe, kTraceAttach, kTraceSeize}) {
    tests_.compare32(Gpr::kRdi, request);
    tests_.if_zero_to(left_);
  }
  tests_.jump_to(made_);
}

void CallChecker::rseq() {
  tests_.compare32(Gpr::kRdx, 0);
  tests_.unless_zero_to(left_);
  // The recorder asks the kernel for the area once the thread has stopped.
  emit_.move(Gpr::kRcx, 0);
  emit_.store(Slot::kServed, Gpr::kRcx);
  tests_.jump_to(made_);
}

void CallChecker::end_of_path(TraceeAddr pc, Gpr path) {
  writer_.places().r10_live = false;
  writer_.mark(pc, kRcxInSlot);
  // Faults if the call would fail.
  emit_.move(Gpr::kR10, path);
  const std::uint32_t begin = emit_.offset();
  emit_.load8(Gpr::kRcx, Memory::at(Gpr::kR10));
  const std::uint32_t end = emit_.jump_if_rcx_zero();
  emit_.lea(Gpr::kR10, Memory::at(Gpr::kR10, 1));
  emit_.jump_back(begin);
  emit_.bind8(end);
  OpenJumps other;
  emit_.load8(Gpr::kRcx, Memory::at(Gpr::kR10, -1));
  tests_.compare32(Gpr::kRcx, kShowsAffinity[1]);
  tests_.unless_zero_to(other);
  emit_.load8(Gpr::kRcx, Memory::at(Gpr::kR10, -2));
  tests_.compare32(Gpr::kRcx, kShowsAffinity[0]);
  tests_.if_zero_to(left_);
  tests_.bind(other);
}

void CallChecker::open(TraceeAddr pc, Gpr path, Gpr flags) {
  end_of_path(pc, path);
  emit_.move8(Gpr::kRcx, flags);
  tests_.look_up(Policy::kOpenFlags);
  tests_.unless_zero_to(left_);
  emit_.move_second_byte_to_rcx(flags);
  made_by_table(Policy::kOpenFlags2);
}

void CallChecker::signal_mask() {
  constexpr std::uint8_t kSetBytes = 8;
  emit_.load(Gpr::kRcx, Slot::kHolds);
  tests_.unless_zero_to(left_);
  emit_.subtract_from_r10_to_rcx(kSetBytes);
  tests_.unless_zero_to(left_);
  made_if_null(Gpr::kRsi);
  // Faults if the call would fail.
  emit_.load(Gpr::kRcx, Memory::at(Gpr::kRsi));
  emit_.store(Slot::kArgument, Gpr::kRcx);
  emit_.load8(Gpr::kRcx, Memory::of(Slot::kArgument, 1));
  tests_.look_up(Policy::kSegvBit);
  emit_.store(Slot::kArgument, Gpr::kRcx);
  OpenJumps sets;
  OpenJumps unblocks;
  tests_.compare32(Gpr::kRdi, kSetMask);
  tests_.if_zero_to(sets);
  tests_.compare32(Gpr::kRdi, kUnblock);
  tests_.if_zero_to(unblocks);
  tests_.compare32(Gpr::kRdi, kBlock);
  tests_.unless_zero_to(left_);
  emit_.load(Gpr::kRcx, Slot::kArgument);
  tests_.if_zero_to(made_);
  emit_.store(Slot::kSegvBlocked, Gpr::kRcx);
  tests_.jump_to(made_);
  tests_.bind(unblocks);
  emit_.load(Gpr::kRcx, Slot::kArgument);
  tests_.if_zero_to(made_);
  emit_.move(Gpr::kRcx, 0);
  emit_.store(Slot::kSegvBlocked, Gpr::kRcx);
  tests_.jump_to(made_);
  tests_.bind(sets);
  emit_.load(Gpr::kRcx, Slot::kArgument);
  emit_.store(Slot::kSegvBlocked, Gpr::kRcx);
  tests_.jump_to(made_);
}

void CallChecker::number(TraceeAddr pc) {
  emit_.store(Slot::kNumber, Gpr::kRax);
  // The kernel uses 32 bits of the number.
  emit_.load16(Gpr::kRcx, Memory::of(Slot::kNumber, 2));
  tests_.unless_zero_to(left_);
  emit_.load8(Gpr::kRcx, Memory::of(Slot::kNumber, 1));
  tests_.look_up(Policy::kNumberHigh);
  tests_.unless_zero_to(left_);
  emit_.move32(Gpr::kRcx, Gpr::kRax);
  made_by_table(Policy::kNumbers);
  const InlineSystemCalls& checks = *options_.inline_system_calls;
  if (checks[kOpenAtNumber] == CallCheck::kOpenAt) {
    OpenJumps other;
    tests_.compare32(Gpr::kRax, kOpenAtNumber);
    tests_.unless_zero_to(other);
    open(pc, Gpr::kRsi, Gpr::kRdx);
    tests_.jump_to(left_);
    tests_.bind(other);
  }
  if (checks[kFutex] != CallCheck::kUsualFutex) return;
  tests_.compare32(Gpr::kRax, kFutex);
  tests_.unless_zero_to(left_);
  futex();
}

void CallChecker::futex() {
  for (const std::uint32_t operation : kUsualFutexes) {
    tests_.compare(Gpr::kRsi, operation);
    tests_.if_zero_to(made_);
  }
}

void CallChecker::range(TraceeAddr pc) {
  // The range must be shorter than 4 GiB and contain no executable memory.
  emit_.store(Slot::kArgument, Gpr::kRsi);
  emit_.load32(Gpr::kRcx, Memory::of(Slot::kArgument, 4));
  tests_.unless_zero_to(left_);
  writer_.places().r10_live = false;
  writer_.mark(pc, kRcxInSlot);
  emit_.move(Gpr::kR10, options_.table.value() + kEntryTableBytes +
                            static_cast<std::uint32_t>(Policy::kRanges));
  const std::uint32_t begin = emit_.offset();
  emit_.load(Gpr::kRcx, Memory::at(Gpr::kR10, offsetof(PolicyRange, negated_begin)));
  tests_.if_zero_to(made_);
  emit_.lea(Gpr::kRcx, Memory::sum(Gpr::kRcx, Gpr::kRdi));
  emit_.lea(Gpr::kRcx, Memory::sum(Gpr::kRcx, Gpr::kRsi, -1));
  emit_.store(Slot::kArgument, Gpr::kRcx);
  emit_.load8(Gpr::kRcx, Memory::of(Slot::kArgument, 7));
  const std::uint32_t ends_behind_begin = emit_.jump_if_rcx_zero();
  const std::uint32_t next = emit_.offset();
  emit_.lea(Gpr::kR10, Memory::at(Gpr::kR10, sizeof(PolicyRange)));
  emit_.jump_back(begin);
  emit_.bind8(ends_behind_begin);
  emit_.load(Gpr::kRcx, Memory::at(Gpr::kR10, offsetof(PolicyRange, negated_end)));
  emit_.lea(Gpr::kRcx, Memory::sum(Gpr::kRcx, Gpr::kRdi));
  emit_.store(Slot::kArgument, Gpr::kRcx);
  emit_.load8(Gpr::kRcx, Memory::of(Slot::kArgument, 7));
  emit_.bytes({kJumpIfRcxZero, static_cast<std::uint8_t>(next - (emit_.offset() + 2))});
}

}  // namespace backtrail::arch::x86::translate
