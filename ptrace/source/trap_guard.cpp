#include "ptrace/source/trap_guard.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "ptrace/cache/remote_calls.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::x86::UserReg;

constexpr std::uint64_t kTrapBit = 1ULL << (SIGTRAP - 1);
constexpr std::uint64_t kRedZoneBytes = 128;
constexpr std::uint64_t kSigsetBytes = 8;
/// Of uc_sigmask in struct ucontext, which rsp points to at rt_sigreturn.
constexpr std::uint64_t kFrameMaskOffset = 296;

/// The call's action lies in the thread's own stack meanwhile, below the red zone.
class StackSlot {
 public:
  explicit StackSlot(Thread& thread) : process_{thread.process()} {
    const auto regs = thread.user_regs();
    if (!regs) return;
    at_ = TraceeAddr{(regs->sp().value() - kRedZoneBytes - saved_.size()) & ~15ULL};
    ok_ = process_.read_memory(at_, saved_) == saved_.size();
  }
  ~StackSlot() {
    if (ok_) (void)process_.write_memory(at_, saved_);
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

/// A stop from which the thread can make system calls for us.
bool can_call(Thread& thread) {
  const WaitStatus& status = thread.status();
  return (status.kind == WaitKind::kStopped || status.is_interrupt_stop()) &&
         !thread.syscall_will_restart();
}

void learn(Thread& thread, TrapAction& known) {
  if (known.action || known.damaged || !can_call(thread)) return;
  const StackSlot slot{thread};
  if (!slot.ok()) return;
  auto remote = cache::RemoteCalls::begin(thread);
  if (!remote) return;
  if (remote->call(SYS_rt_sigaction, {SIGTRAP, 0, slot.at().value(), kSigsetBytes})) {
    known.action = read_value<KernelSigaction>(thread.process(), slot.at());
  }
}

bool ignored_now(Thread& thread) {
  constexpr std::string_view kField{"SigIgn:\t"};
  const auto status = ProcFs{}.read(thread.tid(), "status");
  if (!status) return false;
  const std::size_t at = status->find(kField);
  if (at == std::string::npos) return false;
  std::uint64_t mask = 0;
  const char* begin = status->data() + at + kField.size();
  std::from_chars(begin, status->data() + status->size(), mask, 16);
  return (mask & kTrapBit) != 0;
}

/// Calls after which the action is looked at by the program, or by a child.
bool shows_action(const arch::x86::UserRegs& regs) {
  switch (regs[UserReg::kRax]) {
    case SYS_rt_sigaction:
      return regs[UserReg::kRdi] == SIGTRAP;
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
    const TraceeAddr action{(*regs)[UserReg::kRsi]};
    if ((*regs)[UserReg::kRax] == SYS_rt_sigaction && action != TraceeAddr{}) {
      new_action_ = read_value<KernelSigaction>(process, action);
    }
    return mask;
  }
  if ((*regs)[UserReg::kRax] == SYS_rt_sigreturn) {
    return read_value<std::uint64_t>(process, regs->sp() + kFrameMaskOffset).value_or(mask);
  }
  if ((*regs)[UserReg::kRax] != SYS_rt_sigprocmask) return mask;
  const TraceeAddr set{(*regs)[UserReg::kRsi]};
  const auto bits = read_value<std::uint64_t>(process, set);
  if (set == TraceeAddr{} || !bits) return mask;
  switch ((*regs)[UserReg::kRdi]) {
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
  const auto mask = request::read_signal_mask(thread.tid());
  if (!mask) return;
  before_ = *mask;
  wanted_ = syscall && thread.process().isa() == arch::Isa::kAmd64 ? mask_behind_call(thread, *mask)
                                                                   : *mask;
  TrapAction& known = thread.process().trap_action;
  if (!known.ignored) known.ignored = ignored_now(thread);
  const bool will_ignore =
      new_action_ && new_action_->handler == std::bit_cast<std::uint64_t>(SIG_IGN);
  armed_ = ((before_ | wanted_) & kTrapBit) != 0 || *known.ignored || will_ignore;
  if (armed_ && !new_action_) learn(thread, known);
}

void TrapGuard::after_step(Thread& thread) {
  TrapAction& known = thread.process().trap_action;
  if (new_action_) {
    known.action = new_action_;
    known.ignored = new_action_->handler == std::bit_cast<std::uint64_t>(SIG_IGN);
  }
  if (!std::exchange(armed_, false)) return;
  if (known.action && known.action->handler != 0) known.damaged = true;
  if ((wanted_ & kTrapBit) != 0) {
    // Within a call that has a mask of its own the kernel shows the one that comes back, unharmed;
    // writing it would end the other one too early.
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
  (void)::syscall(SYS_tgkill, thread.id().pid, thread.tid(), SIGTRAP);
  return true;
}

void TrapGuard::repair(Thread& thread) {
  TrapAction& known = thread.process().trap_action;
  if (!known.damaged || !known.action || !can_call(thread)) return;
  const StackSlot slot{thread};
  const auto bytes =
      std::bit_cast<std::array<std::uint8_t, sizeof(KernelSigaction)>>(*known.action);
  if (!slot.ok() || !thread.process().write_memory(slot.at(), bytes)) return;
  auto remote = cache::RemoteCalls::begin(thread);
  if (!remote) return;
  if (remote->call(SYS_rt_sigaction, {SIGTRAP, slot.at().value(), 0, kSigsetBytes})) {
    known.damaged = false;
  }
}

}  // namespace backtrail::tracee
