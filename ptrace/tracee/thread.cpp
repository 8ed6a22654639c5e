// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {
namespace {

constexpr unsigned kDebugStatus = 6;
constexpr unsigned kDebugControl = 7;

// Kernel-internal results of an interrupted system call that will be repeated.
// Source: include/linux/errno.h.
constexpr std::int64_t kErestartSys = -512;
constexpr std::int64_t kErestartNoIntr = -513;
constexpr std::int64_t kErestartNoHand = -514;
constexpr std::int64_t kErestartRestartBlock = -516;

/// Returns true for stops in the middle of a call: fork, clone, exec and the end of a vfork.
bool is_inside_syscall(const WaitStatus& status) {
  return status.is_event(PTRACE_EVENT_FORK) || status.is_event(PTRACE_EVENT_VFORK) ||
         status.is_event(PTRACE_EVENT_CLONE) || status.is_event(PTRACE_EVENT_EXEC) ||
         status.is_event(PTRACE_EVENT_VFORK_DONE);
}

}  // namespace

Thread::Thread(Process& process, pid_t tid)
    : process_{process}, tid_{tid}, cpu_pin_{std::make_shared<CpuPin>(tid)} {
  process_.note_not_stopped(1);
}

Thread::~Thread() {
  set_state(State::kStopped);
}

void Thread::set_state(State state) {
  const int was_running = state_ == State::kStopped ? 0 : 1;
  const int is_running = state == State::kStopped ? 0 : 1;
  process_.note_not_stopped(is_running - was_running);
  state_ = state;
}

ThreadId Thread::id() const {
  return {process_.pid(), tid_};
}

pid_t Thread::group() const {
  return group_ != 0 ? group_ : process_.pid();
}

int Thread::send(int signal) const {
  return ::syscall(SYS_tgkill, group(), tid_, signal) == 0 ? 0 : errno;
}

int Thread::send_again(int signal) const {
  return is_gone() || is_replaced() ? ESRCH : send(signal);
}

void Thread::rename(pid_t tid) {
  tid_ = tid;
  cpu_pin_ = std::make_shared<CpuPin>(tid);
}

void Thread::note_stop(const WaitStatus& status) {
  process_.forget_insn_bytes();
  set_state(State::kStopped);
  status_ = status;
  regs_.reset();
  cause_.reset();
  debug_status_.reset();
  moved_ = false;
  in_syscall_ = is_inside_syscall(status) || (status.kind == WaitKind::kSyscall && !in_syscall_);
  // Any trap consumes a pending one of PTRACE_INTERRUPT (ptrace_stop() in kernel/signal.c). One
  // sent during the trap arrives later, and is swallowed then.
  control_.interrupt_pending = false;
  if (status.is_event(PTRACE_EVENT_EXEC)) {
    debug_generation_ = 0;
    own_debug_.reset();
    own_debug_changed_ = false;
  }
}

Result<TraceeAddr> Thread::pc() {
  if (!stopped()) return fail(TraceErrc::kNotStopped, "read pc", static_cast<std::uint64_t>(tid_));
  if (regs_) return regs_->pc();
  return request::peek_pc(tid_);
}

Result<void> Thread::set_pc(TraceeAddr pc) {
  BT_TRY(arch::cpu::UserRegs regs, user_regs());
  regs.set_pc(pc);
  return set_user_regs(regs);
}

Result<arch::cpu::UserRegs> Thread::user_regs() {
  if (!stopped()) {
    return fail(TraceErrc::kNotStopped, "read registers", static_cast<std::uint64_t>(tid_));
  }
  if (!regs_) {
    BT_TRY(regs_, request::read_user_regs(tid_));
  }
  return *regs_;
}

Result<void> Thread::set_user_regs(const arch::cpu::UserRegs& regs) {
  if (!stopped()) {
    return fail(TraceErrc::kNotStopped, "write registers", static_cast<std::uint64_t>(tid_));
  }
  BT_CHECKED(request::write_user_regs(tid_, regs));
  regs_ = regs;
  return {};
}

Result<arch::cpu::RawRegisters> Thread::registers() {
  arch::cpu::RawRegisters raw;
  BT_TRY(raw.user, user_regs());
  BT_TRY(raw.xsave, request::read_xstate(tid_));
  return raw;
}

Result<void> Thread::set_registers(const arch::cpu::RawRegisters& registers) {
  BT_TRY(const arch::cpu::UserRegs before, user_regs());
  if (!(before == registers.user)) {
    // Read back later, because the kernel may change values, such as selectors.
    BT_CHECKED(set_user_regs(registers.user));
    regs_.reset();
    if (before.pc() != registers.user.pc()) {
      moved_ = true;
      if (source_ != nullptr) source_->on_pc_written(before.pc(), registers.user.pc());
    }
  }
  BT_TRY(const std::vector<std::uint8_t> xstate, request::read_xstate(tid_));
  if (xstate == registers.xsave || registers.xsave.empty()) return {};
  return request::write_xstate(tid_, registers.xsave);
}

TrapCause Thread::trap_cause() {
  if (cause_) return *cause_;
  TrapCause cause = TrapCause::kOther;
  if (const auto info = request::read_siginfo(tid_)) {
    switch (info->si_code) {
      case SI_KERNEL:
        cause = TrapCause::kBreakpointInsn;
        break;
      case TRAP_BRKPT:  // after a system call
      case TRAP_TRACE:
        cause = TrapCause::kStep;
        break;
      case TRAP_HWBKPT:
        cause = TrapCause::kHardware;
        break;
      case SIGTRAP:  // from ptrace_notify(): a stop without a signal
        cause = TrapCause::kHandlerEntry;
        break;
      default:
        break;
    }
  }
  cause_ = cause;
  return cause;
}

std::uint64_t Thread::debug_status() {
  if (debug_status_) return *debug_status_;
  const auto status = request::read_debug_register(tid_, kDebugStatus);
  // The CPU never clears DR6's hit bits (SDM vol. 3, "Debug Status Register (DR6)").
  if (status && (*status & 0xf) != 0) (void)request::write_debug_register(tid_, kDebugStatus, 0);
  debug_status_ = status.value_or(0);
  return *debug_status_;
}

bool Thread::syscall_will_restart() {
  const auto regs = user_regs();
  if (!regs || !arch::cpu::in_syscall(*regs)) return false;
  const bool narrow = process_.isa() == arch::Isa::kI386;
  const std::uint64_t value = syscall_result(*regs);
  const std::int64_t result = narrow ? static_cast<std::int32_t>(static_cast<std::uint32_t>(value))
                                     : static_cast<std::int64_t>(value);
  return result == kErestartSys || result == kErestartNoIntr || result == kErestartNoHand ||
         result == kErestartRestartBlock;
}

Result<TraceeAddr> Thread::next_pc() {
  constexpr std::uint64_t kSystemCallBytes = 2;  // SYSCALL, SYSENTER, INT 80h
  BT_TRY(const TraceeAddr at, pc());
  return syscall_will_restart() ? at - kSystemCallBytes : at;
}

bool Thread::is_gone() const {
  const auto info = request::read_siginfo(tid_);
  if (!info) return info.error().is(TraceErrc::kTraceeGone);
  const bool exits = info->si_code == event_code(PTRACE_EVENT_EXIT);
  if (!exits || status_.is_event(PTRACE_EVENT_EXIT)) return false;
  // A program can queue a SIGTRAP of that code for itself, but that stop's status has been taken.
  return request::has_news(tid_);
}

bool Thread::is_replaced() const {
  const auto info = request::read_siginfo(tid_);
  return info && info->si_code == event_code(PTRACE_EVENT_EXEC) &&
         !status_.is_event(PTRACE_EVENT_EXEC);
}

bool Thread::fault_pending() const {
  const auto waiting = request::pending_signals(tid_);
  if (!waiting) return false;
  return std::any_of(waiting->begin(), waiting->end(), [this](const siginfo_t& info) {
    const bool by_insn = info.si_signo == SIGTRAP || is_raised_by_insns(info.si_signo);
    if (info.si_code <= 0 || !by_insn) return false;
    // The kernel unblocks a signal that it forces; a program that queues one for itself does not.
    const auto mask = request::read_signal_mask(tid_);
    return mask && (*mask >> static_cast<unsigned>(info.si_signo - 1) & 1) == 0;
  });
}

bool Thread::at_signal_delivery() const {
  return stopped() && status_.kind == WaitKind::kStopped &&
         !(status_.signal == SIGTRAP && cause_ == TrapCause::kHandlerEntry);
}

std::size_t Thread::set_own_breakpoints(std::span<const TraceeAddr> addresses) {
  if (addresses.empty() && !own_debug_) return 0;
  own_debug_changed_ = true;
  if (addresses.empty()) {
    own_debug_.reset();
    return 0;
  }
  own_debug_ = process_.debug_registers();
  std::size_t placed = 0;
  for (const TraceeAddr address : addresses) {
    if (own_debug_->insert(address, 1, arch::cpu::DebugAccess::kExecute)) ++placed;
  }
  return placed;
}

Result<void> Thread::sync_debug_registers() {
  if (debug_generation_ == process_.debug_generation() && !own_debug_changed_) return {};
  const auto& wanted = own_debug_ ? *own_debug_ : process_.debug_registers();
  BT_CHECKED(request::write_debug_register(tid_, kDebugControl, 0));
  for (unsigned slot = 0; slot < arch::cpu::DebugRegisters::kSlots; ++slot) {
    if ((wanted.control() >> (2 * slot) & 3) == 0) continue;
    BT_CHECKED(request::write_debug_register(tid_, slot, wanted.address(slot)));
  }
  if (!wanted.empty()) {
    BT_CHECKED(request::write_debug_register(tid_, kDebugControl, wanted.control()));
  }
  debug_generation_ = process_.debug_generation();
  own_debug_changed_ = false;
  return {};
}

Result<void> Thread::run(RunRequest what, int signal) {
  if (auto synced = sync_debug_registers(); !synced) {
    if (synced.error().is(TraceErrc::kTraceeGone)) return synced;
    log::ptrace().warn("tid={}: {}", tid_, synced.error().message());
  }
  Result<void> done;
  switch (what) {
    case RunRequest::kContinue:
      done = request::cont(tid_, signal);
      break;
    case RunRequest::kStep:
      done = request::step(tid_, signal);
      break;
    case RunRequest::kSyscall:
      done = request::cont_syscall(tid_, signal);
      break;
  }
  // A thread that is gone is as good as running: its exit status is on its way.
  process_.forget_insn_bytes();
  process_.inherited_code.reset();
  set_state(State::kRunning);
  last_run_ = what;
  trap_flag_.running();
  regs_.reset();
  cause_.reset();
  debug_status_.reset();
  return done;
}

Result<void> Thread::run_on() {
  trap_flag_.before_going_on();
  return run(last_run_, 0);
}

Result<void> Thread::stay_stopped() {
  BT_CHECKED(request::listen(tid_));
  set_state(State::kListening);
  return {};
}

Result<void> Thread::interrupt() {
  if (control_.interrupt_pending) return {};
  BT_CHECKED(request::interrupt(tid_));
  control_.interrupt_pending = true;
  return {};
}

}  // namespace backtrail::tracee
