// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/trap_flag.hpp"

#include <algorithm>
#include <array>
#include <csignal>

#include <sys/syscall.h>

#include "arch/cpu/program_abi.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "arch/insn.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/signal_frame.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::kTrapFlag;
using arch::cpu::UserReg;

constexpr std::size_t kSyscallBytes = 2;
/// Offset of eflags in struct ucontext, to which rsp points at rt_sigreturn.
constexpr std::uint64_t kFrameFlagsOffset = 176;

/// Returns true for prefixes of one byte that do not change where PUSHF, POPF and IRET find flags.
bool is_ignored_prefix(std::uint8_t byte) {
  constexpr std::array<std::uint8_t, 10> kIgnored{0x26, 0x2e, 0x36, 0x3e, 0x64,
                                                  0x65, 0x67, 0xf0, 0xf2, 0xf3};
  return std::find(kIgnored.begin(), kIgnored.end(), byte) != kIgnored.end();
}

/// The effect of an instruction on flags on the stack.
struct StackedFlags {
  std::optional<std::uint64_t> popped_at;  ///< Offset from the stack pointer before it.
  bool pushed = false;                     ///< The flags are at the stack pointer afterwards.
};

/// Recognises PUSHF, POPF and IRET. Skips the prefixes that the kernel skips
/// (arch/x86/kernel/step.c, is_setting_trap_flag).
StackedFlags stacked_flags(std::span<const std::uint8_t> insn, bool amd64) {
  constexpr std::uint8_t kPushf = 0x9c;
  constexpr std::uint8_t kPopf = 0x9d;
  constexpr std::uint8_t kIret = 0xcf;
  constexpr std::uint8_t kOperandSize = 0x66;
  std::uint64_t slot = 4;
  for (const std::uint8_t byte : insn) {
    if (byte == kPushf) return {.popped_at = std::nullopt, .pushed = true};
    if (byte == kPopf) return {.popped_at = 0, .pushed = false};
    if (byte == kIret) return {.popped_at = 2 * slot, .pushed = false};
    const bool rex = amd64 && (byte & 0xf0) == 0x40;
    if (byte == kOperandSize) slot = 2;
    if (rex && (byte & 0x08) != 0) slot = 8;
    if (byte != kOperandSize && !rex && !is_ignored_prefix(byte)) break;
  }
  return {};
}

}  // namespace

void TrapFlag::before_step(Thread& thread, TraceeAddr pc, std::span<const std::uint8_t> insn) {
  const bool amd64 = thread.process().isa() == arch::Isa::kAmd64;
  stepping_ = pc;
  announced_ = true;
  popped_.reset();
  call_ = amd64 && insn.size() >= kSyscallBytes && insn[0] == 0x0f && insn[1] == 0x05;
  const StackedFlags flags = stacked_flags(insn, amd64);
  pushes_ = flags.pushed;
  flags_popped_ = flags_popped_ || flags.popped_at.has_value();
  frame_is_known_ = !flags_popped_ && !set_ && !insn.empty() && !thread.syscall_will_restart();
  if (!flags.popped_at && !call_) return;
  const auto regs = thread.user_regs();
  if (!regs || (call_ && syscall_number(*regs) != SYS_rt_sigreturn)) return;
  std::array<std::uint8_t, 2> image{};
  const TraceeAddr at = regs->sp() + flags.popped_at.value_or(kFrameFlagsOffset);
  if (thread.process().read_memory(at, image) != image.size()) return;
  popped_ = (image[1] & kTrapFlag >> 8) != 0;
}

void TrapFlag::before_step(Thread& thread) {
  const auto pc = thread.pc();
  if (!pc) return;
  before_step(thread, *pc, thread.process().insn_bytes(*pc));
}

void TrapFlag::before_going_on() {
  announced_ = stepping_.has_value();
}

void TrapFlag::running() {
  if (!announced_) stepping_.reset();
  announced_ = false;
  settled_ = false;
  returns_to_.reset();
}

bool TrapFlag::after_stop(Thread& thread) {
  if (settled_) return own_trap_;
  settled_ = true;
  // The flag set at the start of the instruction determines whether it traps.
  own_trap_ = set_ && !(stepping_ && call_);
  const WaitStatus& status = thread.status();
  const bool trap = status.kind == WaitKind::kStopped && status.signal == SIGTRAP;
  if (stepping_ && trap && thread.trap_cause() == TrapCause::kHandlerEntry) {
    enter_handler(thread);
  } else if (stepping_) {
    settle_step(thread);
  } else if (const auto regs = thread.user_regs()) {
    // Without a step, the flag that Linux shows is the program's.
    set_ = ((*regs)[UserReg::kEflags] & kTrapFlag) != 0;
    own_trap_ = own_trap_ || set_;
  }
  return own_trap_;
}

void TrapFlag::enter_handler(Thread& thread) {
  if (frame_is_known_) {
    returns_to_ = stepping_;
    own_trap_ = false;
    return;
  }
  // The flags that the instruction would have popped do not matter: it has not been executed.
  const auto saved = saved_pc(thread, thread.process(), *stepping_, *stepping_ + kSyscallBytes);
  if (saved) {
    returns_to_ = saved->pc;
    set_saved_trap_flag(thread.process(), *saved, set_);
  }
  set_ = false;  // until the handler returns
  own_trap_ = false;
}

void TrapFlag::settle_step(Thread& thread) {
  auto regs = thread.user_regs();
  if (!regs) return;
  const bool moved = regs->pc() != *stepping_;
  const bool returned = popped_.has_value() && moved;
  if (moved && pushes_ && !set_) clear_pushed(thread, regs->sp());
  bool changed = call_ && clear_saved_by_call(*regs);
  if (returned) set_ = *popped_;
  const bool shown = ((*regs)[UserReg::kEflags] & kTrapFlag) != 0;
  if (shown != set_ && (!set_ || returned)) {
    (*regs)[UserReg::kEflags] ^= kTrapFlag;
    changed = true;
  }
  if (changed) (void)thread.set_user_regs(*regs);
}

void TrapFlag::clear_pushed(Thread& thread, TraceeAddr flags) {
  constexpr std::uint8_t kBit = kTrapFlag >> 8;  // of the second byte
  std::array<std::uint8_t, 1> byte{};
  if (thread.process().read_memory(flags + 1, byte) != 1 || (byte[0] & kBit) == 0) return;
  byte[0] &= static_cast<std::uint8_t>(~kBit);
  (void)thread.process().write_data(flags + 1, byte);
}

bool TrapFlag::clear_saved_by_call(arch::cpu::UserRegs& regs) {
  // After rt_sigreturn both registers have the program's own values.
  const std::uint64_t flags = regs[UserReg::kEflags] | kTrapFlag;
  if (regs[UserReg::kR11] != flags || regs[UserReg::kRcx] != regs.pc().value()) return false;
  regs[UserReg::kR11] &= ~kTrapFlag;
  return true;
}

}  // namespace backtrail::tracee
