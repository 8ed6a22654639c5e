// SPDX-License-Identifier: Apache-2.0
// Signals in translated code: faults that are delivered from where they occur, and handlers that
// return into translated code.

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <utility>

#include <sys/syscall.h>

#include "arch/cpu/program_abi.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::kTrapFlag;
using arch::cpu::UserReg;
using arch::cpu::translate::FrameField;
using arch::cpu::translate::kFrameBytes;
using arch::cpu::translate::Slot;
using arch::cpu::translate::UntranslatableReason;

constexpr std::uint64_t kCodeSegment64 = 0x33;
/// More than a checked superblock reads of the program's code.
constexpr std::uint64_t kMostCodeRead = 256;

using Frame = std::span<std::uint8_t, kFrameBytes>;

std::uint64_t word_of(Frame frame, FrameField field) {
  std::uint64_t word = 0;
  std::memcpy(&word, frame.data() + static_cast<std::size_t>(field), sizeof word);
  return word;
}

void set_word(Frame frame, FrameField field, std::uint64_t word) {
  std::memcpy(frame.data() + static_cast<std::size_t>(field), &word, sizeof word);
}

}  // namespace

/// Returns true if the instruction at the thread's native pc would itself have raised this signal.
/// If the fault may come from an access by translated code, or from a limit on address space, the
/// CPU must decide.
bool CacheSource::is_fault_of_program(Thread& thread, siginfo_t& info) const {
  if (!at_insn_ || process_.address_limit.counts_ours()) return false;
  const auto pc = thread.pc();
  if (!pc) return false;
  const auto bytes = process_.insn_bytes(*pc);
  if (bytes.size() < arch::cpu::kSyscallInsnBytes || arch::cpu::is_syscall(bytes)) return false;
  const std::uint64_t at = std::bit_cast<std::uint64_t>(info.si_addr);
  switch (info.si_signo) {
    case SIGSEGV:
    case SIGBUS:
      return at - pc->value() >= kMostCodeRead;
    case SIGFPE:
      info.si_addr = std::bit_cast<void*>(pc->value());
      return request::write_siginfo(thread.tid(), info).has_value();
    default:
      return false;
  }
}

void CacheSource::note_slice() {
  memory_->write(Slot::kHolds, slice().active() ? 1 : 0);
  const bool stops = slice().awaits_return() || process_.address_limit.counts_ours();
  memory_->write(Slot::kReturnStops, stops ? 1 : 0);
}

/// The thread stands before rt_sigreturn, in its native state. The kernel is given a copy of
/// the frame that lets it go on in translated code: one stop less than a step over the call. False:
/// it has to be stepped.
bool CacheSource::return_from_handler(Thread& thread) {
  const auto regs = thread.user_regs();
  const SourceResume how = last_resume();
  if (!regs || syscall_number(*regs) != SYS_rt_sigreturn || how.step || how.syscalls ||
      thread.stop_wanted() || process_.address_limit.counts_ours() ||
      !space_->protected_pages().empty() || space_->disabled() || space_->room_wanted() ||
      space_->gate_closed() || process_.lifted_for_vfork || !everybody_recorded()) {
    return false;
  }
  const Frame frame{memory_->scratch(static_cast<std::uint64_t>(Slot::kFrame)), kFrameBytes};
  if (process_.read_memory(regs->sp(), frame) != frame.size() ||
      (word_of(frame, FrameField::kCs) & 0xffff) != kCodeSegment64 ||
      (word_of(frame, FrameField::kFlags) & kTrapFlag) != 0) {
    return false;
  }
  const TraceeAddr to{word_of(frame, FrameField::kRip)};
  const auto translation = space_->code().translation(to);
  if (std::holds_alternative<UntranslatableReason>(translation)) return false;
  const HandlerReturn made{.at = regs->pc(), .to = to, .stack = regs->sp(), .held = slice().held()};
  const std::uint64_t mask = word_of(frame, FrameField::kMask);
  memory_->write(Slot::kR10, word_of(frame, FrameField::kR10));
  memory_->write(Slot::kR11, word_of(frame, FrameField::kR11));
  memory_->write(Slot::kSegvBlocked, mask & kSegvBit);
  set_word(frame, FrameField::kMask, slice().note_return(mask));
  if (slice().active()) slice().measure(thread.tid());
  note_slice();
  set_word(frame, FrameField::kR11, memory_->log_begin().value());
  set_word(frame, FrameField::kRip, std::get<TraceeAddr>(translation).value());
  arch::cpu::UserRegs changed = *regs;
  changed[UserReg::kRsp] = memory_->read(Slot::kFrameAt);
  changed[UserReg::kGsBase] = memory_->page().value();
  if (!thread.set_user_regs(changed)) return false;
  returning_ = made;
  counted_at_ = TraceeAddr{};
  set_inside(true);
  ++entries_;
  (void)thread.run(RunRequest::kContinue, 0);
  return true;
}

void CacheSource::note_returned() {
  const auto made = std::exchange(returning_, std::nullopt);
  if (made) push(decoder::branch(made->at, made->to));
}

/// Call when a thread that was to return from a handler has stopped. Returns false if it has not
/// returned; the thread is then in its native state.
bool CacheSource::has_returned(Thread& thread, TraceeAddr pc) {
  if (space_->memory().has_code(pc)) {
    note_returned();
    return true;
  }
  const HandlerReturn made = *std::exchange(returning_, std::nullopt);
  slice().forget(~made.held);
  if (auto regs = thread.user_regs()) {
    (*regs)[UserReg::kRsp] = made.stack.value();
    (*regs)[UserReg::kGsBase] = 0;
    (void)thread.set_user_regs(*regs);
  }
  set_inside(false);
  moved_to(pc);
  return false;
}

}  // namespace backtrail::tracee
