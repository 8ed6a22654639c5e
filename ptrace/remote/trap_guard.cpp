// SPDX-License-Identifier: Apache-2.0
#include "ptrace/remote/trap_guard.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/cpu/program_abi.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::kRedZoneBytes;

constexpr std::uint64_t kSigsetBytes = 8;
/// Offset of uc_sigmask in struct ucontext, to which rsp points at rt_sigreturn.
constexpr std::uint64_t kFrameMaskOffset = 296;

/// Space for a call's struct sigaction: in the thread's own stack, below the red zone.
class StackSlot {
 public:
  explicit StackSlot(Thread& thread) : process_{thread.process()} {
    const auto regs = thread.user_regs();
    if (!regs) return;
    at_ = TraceeAddr{(regs->sp().value() - kRedZoneBytes - saved_.size()) & ~15ULL};
    ok_ = process_.read_memory(at_, saved_) == saved_.size();
  }
  ~StackSlot() {
    if (ok_) (void)process_.write_data(at_, saved_);
  }
  StackSlot(const StackSlot&) = delete;
  StackSlot& operator=(const StackSlot&) = delete;
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] TraceeAddr at() const { return at_; }

 private:
  Process& process_;
  TraceeAddr at_;
  std::array<std::uint8_t, sizeof(KernelSigaction)> saved_{};
  bool ok_ = false;
};

template <typename T>
std::optional<T> read_value(Process& process, TraceeAddr at) {
  std::array<std::uint8_t, sizeof(T)> bytes{};
  if (process.read_memory(at, bytes) != bytes.size()) return std::nullopt;
  return std::bit_cast<T>(bytes);
}

/// Returns true if the thread can make system calls for the server from this stop.
bool can_call(Thread& thread) {
  const WaitStatus& status = thread.status();
  // Exclude SIGSTOP: if another thread's SIGCONT has ended it, a further stop would begin it anew.
  const bool stops = status.kind == WaitKind::kStopped && status.signal == SIGSTOP;
  return (status.kind == WaitKind::kStopped || status.is_interrupt_stop()) && !stops &&
         !thread.syscall_will_restart();
}

void learn(Thread& thread, TrapAction& known) {
  if (known.action || known.damaged || !can_call(thread)) return;
  const StackSlot slot{thread};
  if (!slot.ok()) return;
  auto remote = RemoteCalls::begin(thread);
  if (!remote) return;
  if (remote->call(SYS_rt_sigaction, {SIGTRAP, 0, slot.at().value(), kSigsetBytes})) {
    if (const auto found = read_value<KernelSigaction>(thread.process(), slot.at())) {
      known.learn(*found);
    }
  }
}

bool ignored_now(Thread& thread) {
  return (signal_set(thread.tid(), "SigIgn") & kTrapBit) != 0;
}

bool has_action(const TrapAction& known) {
  return known.action ? known.action->handler != 0 : known.ignored.value_or(false);
}

/// Returns true for calls that let the program, or a child, see the action.
bool shows_action(const arch::cpu::UserRegs& regs) {
  switch (syscall_number(regs)) {
    case SYS_rt_sigaction:
      return syscall_argument(regs, 0) == SIGTRAP;
    case SYS_fork:
    case SYS_vfork:
    case SYS_clone:
    case SYS_clone3:
    case SYS_execve:
    case SYS_execveat:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::uint64_t TrapGuard::mask_behind_call(Thread& thread, std::uint64_t mask) {
  const auto regs = thread.user_regs();
  if (!regs) return mask;
  Process& process = thread.process();
  if (shows_action(*regs)) {
    repair(thread);
    if (syscall_number(*regs) != SYS_rt_sigaction) return mask;
    const TraceeAddr action{syscall_argument(*regs, 1)};
    const TraceeAddr old_action{syscall_argument(*regs, 2)};
    if (action != TraceeAddr{}) new_action_ = read_value<KernelSigaction>(process, action);
    if (old_action != TraceeAddr{}) old_action_at_ = old_action;
    return mask;
  }
  if (syscall_number(*regs) == SYS_rt_sigreturn) {
    return read_value<std::uint64_t>(process, regs->sp() + kFrameMaskOffset).value_or(mask);
  }
  if (syscall_number(*regs) != SYS_rt_sigprocmask) return mask;
  if (syscall_argument(*regs, 3) != kSigsetBytes) return mask;  // fails
  const TraceeAddr set{syscall_argument(*regs, 1)};
  const auto bits = read_value<std::uint64_t>(process, set);
  if (set == TraceeAddr{} || !bits) return mask;
  switch (syscall_argument(*regs, 0)) {
    case SIG_BLOCK:
      return mask | *bits;
    case SIG_UNBLOCK:
      return mask & ~*bits;
    case SIG_SETMASK:
      return *bits;
    default:
      return mask;
  }
}

void TrapGuard::before_step(Thread& thread, bool syscall) {
  armed_ = false;
  new_action_.reset();
  old_action_at_.reset();
  const auto mask = request::read_signal_mask(thread.tid());
  if (!mask) return;
  before_ = *mask;
  wanted_ = syscall && thread.process().isa() == arch::Isa::kAmd64 ? mask_behind_call(thread, *mask)
                                                                   : *mask;
  TrapAction& known = thread.process().trap_action;
  learn_ignored(thread);
  const bool will_ignore =
      new_action_ && new_action_->handler == std::bit_cast<std::uint64_t>(SIG_IGN);
  armed_ = ((before_ | wanted_) & kTrapBit) != 0 || *known.ignored || will_ignore;
  if (armed_ && !new_action_) learn(thread, known);
}

void TrapGuard::correct_old_action(Thread& thread) const {
  // Another thread's step may have reset the action in between.
  const TrapAction& known = thread.process().trap_action;
  if (!old_action_at_) return;
  std::uint64_t handler = 0;
  if (known.action) {
    handler = known.action->handler;
  } else if (known.ignored.value_or(false)) {
    handler = std::bit_cast<std::uint64_t>(SIG_IGN);
  }
  const auto result = request::peek_user_reg(thread.tid(), arch::cpu::kSyscallResult);
  if (handler == 0 || result.value_or(1) != 0) return;
  const auto shown = read_value<std::uint64_t>(thread.process(), *old_action_at_);
  if (shown.value_or(1) != 0) return;
  const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof handler>>(handler);
  (void)thread.process().write_data(*old_action_at_, bytes);
}

void TrapGuard::settle(Thread& thread, bool executed) {
  TrapAction& known = thread.process().trap_action;
  if (executed) {
    correct_old_action(thread);
    if (new_action_) {
      known.action = new_action_;
      known.ignored = new_action_->handler == std::bit_cast<std::uint64_t>(SIG_IGN);
    }
  }
  if (!std::exchange(armed_, false)) return;
  if (has_action(known)) known.damaged = true;
  if (((executed ? wanted_ : before_) & kTrapBit) != 0) {
    // Inside a call with a signal mask of its own, the kernel shows the mask that comes back, which
    // is intact; writing it would end the call's own mask too early.
    const auto now = request::read_signal_mask(thread.tid());
    if (now && (*now & kTrapBit) == 0) {
      (void)request::write_signal_mask(thread.tid(), *now | kTrapBit);
    }
  } else if ((before_ & kTrapBit) != 0) {
    repair(thread);
  }
}

bool TrapGuard::swallowed_by_pending(Thread& thread) {
  if (!armed_ || (wanted_ & kTrapBit) == 0) return false;
  after_step(thread);
  thread.send_again(SIGTRAP);
  return true;
}

void TrapGuard::learn_ignored(Thread& thread) {
  TrapAction& known = thread.process().trap_action;
  if (!known.ignored) known.ignored = ignored_now(thread);
}

void TrapGuard::note_forced(Thread& thread, bool blocked) {
  TrapAction& known = thread.process().trap_action;
  if ((blocked || known.ignored.value_or(false)) && has_action(known)) known.damaged = true;
}

void TrapGuard::repair(Thread& thread) {
  if (can_call(thread)) repair_from_any_stop(thread);
}

void TrapGuard::repair_from_any_stop(Thread& thread) {
  TrapAction& known = thread.process().trap_action;
  if (!known.damaged) return;
  const StackSlot slot{thread};
  if (!slot.ok()) return;
  auto remote = RemoteCalls::begin(thread);
  if (!remote) return;
  if (!known.action) {
    // The signal was ignored all along and never looked at, so its flags are unchanged.
    if (!remote->call(SYS_rt_sigaction, {SIGTRAP, 0, slot.at().value(), kSigsetBytes})) return;
    known.action = read_value<KernelSigaction>(thread.process(), slot.at());
    if (!known.action) return;
    known.action->handler = std::bit_cast<std::uint64_t>(SIG_IGN);
  }
  const auto bytes =
      std::bit_cast<std::array<std::uint8_t, sizeof(KernelSigaction)>>(*known.action);
  if (!thread.process().write_data(slot.at(), bytes)) return;
  if (remote->call(SYS_rt_sigaction, {SIGTRAP, slot.at().value(), 0, kSigsetBytes})) {
    known.damaged = false;
  }
}

}  // namespace backtrail::tracee
