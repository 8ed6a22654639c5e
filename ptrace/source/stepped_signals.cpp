// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/stepped_signals.hpp"

#include <array>
#include <bit>
#include <csignal>
#include <utility>

#include <sys/syscall.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

/// Offset of uc_sigmask from the stack pointer, at a handler's first instruction.
constexpr std::uint64_t kFrameMask = 8 + 296;

using Word = std::array<std::uint8_t, sizeof(std::uint64_t)>;

std::optional<std::uint64_t> read_set(Process& process, TraceeAddr at) {
  Word bytes{};
  if (at == TraceeAddr{} || process.read_memory(at, bytes) != bytes.size()) return std::nullopt;
  return std::bit_cast<std::uint64_t>(bytes);
}

/// Hides held signals from the program, in the signal set at `at`.
void hide(Process& process, TraceeAddr at, std::uint64_t held) {
  const auto shown = read_set(process, at);
  if (shown && (*shown & held) != 0) {
    (void)process.write_data(at, std::bit_cast<Word>(*shown & ~held));
  }
}

/// Returns true for calls with a signal mask of their own, which writing the thread's mask would
/// end too early.
bool has_own_mask(std::uint64_t call) {
  return call == SYS_rt_sigsuspend || call == SYS_ppoll || call == SYS_pselect6 ||
         call == SYS_epoll_pwait || call == SYS_epoll_pwait2;
}

bool sends_signals(std::uint64_t call) {
  return call == SYS_kill || call == SYS_tkill || call == SYS_tgkill ||
         call == SYS_rt_sigqueueinfo || call == SYS_rt_tgsigqueueinfo;
}

/// Returns true if the process is recorded or has ended. Processes that end after each signal do
/// not send many.
bool is_recorded_or_ended(pid_t pid) {
  if (pid == 0) return false;  // the sender is in another pid namespace
  const auto status = ProcFs{}.status(pid);
  return !status || status->traced_here() || status->state == 'Z' || status->state == 'X';
}

}  // namespace

std::optional<SignalSlice::Clock::time_point> SteppedSignals::stop_due() const {
  return slice_.active() ? std::optional{slice_.over_at()} : std::nullopt;
}

void SteppedSignals::end_slice(Thread& thread) {
  if (!call_ || !has_own_mask(call_->number)) slice_.end(thread);
}

void SteppedSignals::begin_step(Thread& thread, int signal, bool is_call) {
  if (signal == 0 || !call_ || !has_own_mask(call_->number)) call_.reset();
  if (slice_.over()) end_slice(thread);
  if (signal == 0) {
    if (is_call) begin_call(thread);
    return;
  }
  if (!SignalSlice::may_hold(signal)) return;
  const auto info = request::read_siginfo(thread.tid());
  if (!info) return;
  slice_.note_delivery(*info, [this](pid_t sender) {
    return sender == process_.pid() || is_recorded_or_ended(sender);
  });
}

void SteppedSignals::begin_call(Thread& thread) {
  if (process_.isa() != arch::Isa::kAmd64) return;
  const auto regs = thread.user_regs();
  if (!regs) return;
  const std::uint64_t number = syscall_number(*regs);
  if (number != SYS_rt_sigreturn && !slice_.active()) return;
  Call call{.number = number, .how = syscall_argument(*regs, 0), .set = {}, .shown_at = {}};
  if (number == SYS_rt_sigprocmask) {
    call.set = read_set(process_, TraceeAddr{syscall_argument(*regs, 1)});
    call.shown_at = TraceeAddr{syscall_argument(*regs, 2)};
  } else if (number == SYS_rt_sigpending) {
    call.shown_at = TraceeAddr{syscall_argument(*regs, 0)};
  }
  call_ = call;
}

void SteppedSignals::end_step(Thread& thread) {
  const auto call = std::exchange(call_, std::nullopt);
  if (!call) return;
  if (call->number == SYS_rt_sigreturn) return handler_returned(thread);
  // Signals that the thread sent to itself must be there when the call returns.
  if (sends_signals(call->number)) return slice_.end(thread);
  const auto regs = thread.user_regs();
  if (!regs || syscall_result(*regs) != 0) return;
  hide(process_, call->shown_at, slice_.held());
  if (call->number != SYS_rt_sigprocmask || !call->set) return;
  slice_.forget(call->how == SIG_SETMASK ? ~std::uint64_t{0} : *call->set);
}

void SteppedSignals::handler_returned(Thread& thread) {
  const auto mask = request::read_signal_mask(thread.tid());
  if (!mask) return;
  const std::uint64_t with = slice_.note_return(*mask);
  if (with == *mask) return;
  slice_.measure(thread.tid());
  (void)request::write_signal_mask(thread.tid(), with);
}

void SteppedSignals::handler_entered(Thread& thread) {
  call_.reset();
  if (!slice_.active()) return;
  // The mask that the handler's return restores becomes the thread's own.
  const auto regs = thread.user_regs();
  if (regs && process_.isa() == arch::Isa::kAmd64) {
    hide(process_, regs->sp() + kFrameMask, slice_.held());
  }
  slice_.end(thread);
}

}  // namespace backtrail::tracee
