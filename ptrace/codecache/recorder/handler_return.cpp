// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/handler_return.hpp"

#include <cstring>
#include <span>
#include <utility>
#include <variant>

#include <sys/syscall.h>

#include "arch/cpu/program_abi.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::kCodeSegment64;
using arch::cpu::kTrapFlag;
using arch::cpu::UserReg;
using translate::FrameField;
using translate::kFrameBytes;
using translate::Slot;

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

void note_slice(ThreadMemory& memory, const SignalSlice& slice, bool limit_counts_ours) {
  memory.write(Slot::kHolds, slice.active() ? 1 : 0);
  memory.write(Slot::kReturnStops, slice.awaits_return() || limit_counts_ours ? 1 : 0);
}

std::optional<arch::cpu::UserRegs> HandlerReturn::begin(Thread& thread, CacheSpace& space,
                                                        ThreadMemory& memory, SignalSlice& slice) {
  const auto regs = thread.user_regs();
  if (!regs || syscall_number(*regs) != SYS_rt_sigreturn) return std::nullopt;
  const Frame frame{memory.scratch(static_cast<std::uint64_t>(Slot::kFrame)), kFrameBytes};
  if (thread.process().read_memory(regs->sp(), frame) != frame.size() ||
      (word_of(frame, FrameField::kCs) & 0xffff) != kCodeSegment64 ||
      (word_of(frame, FrameField::kFlags) & kTrapFlag) != 0) {
    return std::nullopt;
  }
  const TraceeAddr to{word_of(frame, FrameField::kRip)};
  const auto translation = space.code().translation(to);
  if (std::holds_alternative<translate::UntranslatableReason>(translation)) return std::nullopt;
  made_ = {.at = regs->pc(), .to = to, .stack = regs->sp(), .held = slice.held()};
  const std::uint64_t mask = word_of(frame, FrameField::kMask);
  memory.write(Slot::kR10, word_of(frame, FrameField::kR10));
  memory.write(Slot::kR11, word_of(frame, FrameField::kR11));
  memory.write(Slot::kSegvBlocked, mask & kSegvBit);
  set_word(frame, FrameField::kMask, slice.note_return(mask));
  if (slice.active()) slice.measure(thread.tid());
  note_slice(memory, slice, false);
  set_word(frame, FrameField::kR11, memory.log_begin().value());
  set_word(frame, FrameField::kRip, std::get<TraceeAddr>(translation).value());
  arch::cpu::UserRegs changed = *regs;
  changed[UserReg::kRsp] = memory.read(Slot::kFrameAt);
  changed[UserReg::kGsBase] = memory.page().value();
  return changed;
}

std::optional<decoder::Record> HandlerReturn::take() {
  const auto made = std::exchange(made_, std::nullopt);
  return made ? std::optional{decoder::branch(made->at, made->to)} : std::nullopt;
}

void HandlerReturn::undo(Thread& thread, SignalSlice& slice) {
  const auto made = std::exchange(made_, std::nullopt);
  if (!made) return;
  slice.forget(~made->held);
  if (auto regs = thread.user_regs()) {
    (*regs)[UserReg::kRsp] = made->stack.value();
    (*regs)[UserReg::kGsBase] = 0;
    (void)thread.set_user_regs(*regs);
  }
}

}  // namespace backtrail::tracee::cache
