// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/forced_signals.hpp"

#include <bit>

#include "arch/cpu/registers.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/remote/trap_guard.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

using arch::cpu::UserReg;
using translate::Slot;

namespace {

/// More than a checked superblock reads of the program's code.
constexpr std::uint64_t kMostCodeRead = 256;

}  // namespace

std::optional<siginfo_t> raised_by_insn(Thread& thread) {
  const WaitStatus& status = thread.status();
  if (status.kind != WaitKind::kStopped || !is_raised_by_insns(status.signal)) return std::nullopt;
  const auto info = request::read_siginfo(thread.tid());
  return info && info->si_code > 0 ? std::optional{*info} : std::nullopt;
}

bool raised_by_program(Thread& thread, siginfo_t& info) {
  const auto pc = thread.pc();
  if (!pc) return false;
  const auto bytes = thread.process().insn_bytes(*pc);
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

bool ForcedSignals::segv_blocked(Thread& thread) const {
  const auto pc = thread.pc();
  const bool returns = pc && space_.code().is_after_handler(*pc);
  return memory_.read(returns ? Slot::kReturnSegv : Slot::kSegvBlocked) != 0;
}

std::optional<TraceeAddr> ForcedSignals::fault_at(Thread& thread) const {
  const auto info = request::read_siginfo(thread.tid());
  if (!info) return std::nullopt;
  if (info->si_code > 0) return TraceeAddr{std::bit_cast<std::uint64_t>(info->si_addr)};
  // A signal that was sent and is blocked can only be here because the fault was merged into it.
  return segv_blocked(thread) ? std::optional{memory_.log_end()} : std::nullopt;
}

bool ForcedSignals::is_full_log(Thread& thread) const {
  const auto regs = thread.user_regs();
  return regs && (*regs)[UserReg::kR11] == memory_.log_end().value() &&
         fault_at(thread) == memory_.log_end();
}

bool ForcedSignals::take_fault(Thread& thread) const {
  const auto info = request::read_siginfo(thread.tid());
  auto mask = request::read_signal_mask(thread.tid());
  if (!mask) return false;
  // A signal that is forced is unblocked.
  if (segv_blocked(thread)) *mask |= kSegvBit;
  if (!space_.segv_action().repair(thread, space_.memory().thread(slot_), *mask)) return false;
  if (info && info->si_code <= 0) {
    thread.send_again(SIGSEGV);
  }
  return true;
}

bool ForcedSignals::take_trap(Thread& thread) const {
  const std::uint64_t mask = memory_.read(Slot::kMask);
  const bool blocked = (mask & kTrapBit) != 0;
  TrapGuard::note_forced(thread, blocked);
  // The kernel unblocks a signal that it forces.
  if (blocked && !request::write_signal_mask(thread.tid(), mask)) return false;
  const WaitStatus& status = thread.status();
  const bool merged = status.kind == WaitKind::kStopped && status.signal == SIGTRAP &&
                      thread.trap_cause() != TrapCause::kBreakpointInsn;
  if (merged) thread.send_again(SIGTRAP);
  return true;
}

}  // namespace backtrail::tracee::cache
