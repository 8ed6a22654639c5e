// SPDX-License-Identifier: Apache-2.0
// Interprets the kernel's wait statuses.

#include <algorithm>
#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/breakpoint_hit.hpp"

namespace backtrail::tracee {
namespace {

/// Returns true if the thread's affinity may be narrowed while its source sees its calls.
bool may_pin(Thread& thread) {
  const BranchSource* source = thread.source();
  return source != nullptr && source->sees_calls() &&
         thread.process().own_affinity.may_be_narrowed();
}

/// Returns true if the thread's affinity may be narrowed while it stops for the client's sake:
/// nobody in its process can see that before the engine does (Engine::hide_affinity()).
bool may_pin_for_client(Thread& thread) {
  if (may_pin(thread)) return true;
  const BranchSource* source = thread.source();
  const auto& threads = thread.process().threads();
  return (source == nullptr || !source->sees_calls()) &&
         thread.process().isa() == arch::Isa::kAmd64 &&
         std::all_of(threads.begin(), threads.end(),
                     [&](const auto& each) { return each.get() == &thread || each->stopped(); });
}

}  // namespace

bool Engine::wait_one(pid_t tid) {
  // The kernel looks at every traced thread before it answers that none has news.
  if (tid == -1 && !child_signal_.may_have_news()) return false;
  int raw = 0;
  const pid_t found = ::waitpid(tid, &raw, __WALL | WNOHANG);
  if (found <= 0) {
    if (tid == -1) child_signal_.note_no_news();
    return false;
  }
  handle(found, WaitStatus::decode(raw));
  return true;
}

void Engine::handle(pid_t tid, const WaitStatus& status) {
  Thread* known = tasks_.find_thread(tid);
  if (known == nullptr) {
    if (loose_.erase(tid) != 0) {
      const bool signalled = status.kind == WaitKind::kStopped;
      if (status.stopped()) (void)request::detach(tid, signalled ? status.signal : 0);
      return;
    }
    if (status.stopped() && on_stranger_ && on_stranger_(tid, status)) return;
    // The first stop of a new child may arrive before its parent's event. Ends of threads that were
    // destroyed by an exec are ignored.
    if (status.is_event(PTRACE_EVENT_EXIT)) {
      // The parent was killed before its event.
      (void)unclaimed_.claim(tid);
      (void)request::cont(tid);
      return;
    }
    if (status.stopped()) unclaimed_.note(tid, status);
    if (status.ended()) (void)unclaimed_.claim(tid);
    if (status.ended() && let_go_.erase(tid) != 0) {
      events_.note_untraced_end(StopEvent::end_of({tid, tid}, status));
    }
    return;
  }
  Thread& thread = *known;
  if (auto& logger = log::ptrace(); logger.writes(log::Level::kTrace))
    logger.trace("tid={} {}", tid, status.describe());
  if (status.ended()) {
    handle_end(thread, status);
  } else if (status.stopped()) {
    handle_stop(thread, status);
    // Others may write there from now on.
    if (Thread* now = tasks_.find_thread(tid)) now->process().forget_insn_bytes();
  }
}

void Engine::post(Thread& thread, StopEvent event) {
  events_.put(thread, std::move(event));
  thread.control().stop_wanted = false;
  // This event answers a request to stop. A Ctrl-C goes to another thread.
  if (take_ctrl_c(thread)) interrupt();
}

void Engine::handle_stop(Thread& thread, const WaitStatus& status) {
  thread.note_stop(status);
  if (thread.trace()) thread.trace()->note_stop();
  if (status.is_event(PTRACE_EVENT_EXIT)) thread.control().starting = false;
  if (thread.control().starting) {
    handle_first_stop(thread);
    return;
  }
  if (status.is_event(PTRACE_EVENT_STOP) && thread.fault_pending()) {
    let_fault_come(thread);
    return;
  }
  if (status.is_event(PTRACE_EVENT_EXEC) && thread.group() == thread.id().pid) {
    let_clones_go(thread.process());
    const auto renewed = thread.process().renew_memory();
    if (!renewed) log::ptrace().warn("tid={}: {}", thread.tid(), renewed.error().message());
    if (thread.trace()) thread.trace()->spare_history();
  }
  if (status.is_event(PTRACE_EVENT_EXEC) && thread.group() != thread.id().pid) {
    return let_clone_go(thread);
  }
  const StopVerdict verdict =
      thread.trace() ? thread.trace()->source().on_stop(thread, status) : StopVerdict::kReport;
  if (verdict == StopVerdict::kTraceRequest) {
    stop_cpu_.go_back();
    handle_trace_request(thread);
    return;
  }
  if (verdict == StopVerdict::kResumed) {
    // The source's stop may have swallowed the requested one.
    ThreadControl& control = thread.control();
    const bool stops_again = std::exchange(control.group_stop_due, false);
    if (stops_again || control.stop_wanted || control.client_stop) (void)thread.interrupt();
    BranchSource& source = thread.trace()->source();
    if (source.kind() == SourceKind::kStep && may_pin(thread)) {
      stop_cpu_.note_stop(thread.cpu_pin(), true);
    }
    if (source.may_ask() && stop_cpu_.narrowed()) source.let_wait();
    if (source.may_ask()) asking_.insert(thread.tid());
    note_due(thread);
    return;
  }
  if (leaving_.contains(thread.id().pid)) {
    let_leave(thread);
    return;
  }
  switch (status.kind) {
    case WaitKind::kStopped:
      if (!is_passed(thread, status.signal) && thread.is_gone()) {
        return (void)thread.run(RunRequest::kContinue, 0);
      }
      handle_signal(thread, status.signal);
      return;
    case WaitKind::kSyscall:
      handle_syscall(thread);
      return;
    case WaitKind::kEvent:
      // Threads and processes are born and end.
      if (status.event != PTRACE_EVENT_STOP) stop_cpu_.go_back();
      break;
    default:
      return;
  }
  switch (status.event) {
    case PTRACE_EVENT_STOP:
      handle_event_stop(thread);
      return;
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
      handle_new_task(thread);
      return;
    case PTRACE_EVENT_VFORK_DONE:
      handle_vfork_done(thread);
      return;
    case PTRACE_EVENT_EXEC:
      handle_exec(thread);
      return;
    case PTRACE_EVENT_EXIT:
      handle_exiting(thread);
      return;
    default:
      go(thread);
      return;
  }
}

/// Postpones a stop that arrived before a signal that an instruction has raised, because that
/// signal may be meant for the source alone and the state in between must not be shown. When
/// resumed, the thread executes nothing before it stops with that signal.
void Engine::let_fault_come(Thread& thread) {
  const bool stays = thread.status().is_group_stop();
  if (stays && !thread.stop_wanted() && thread.stay_stopped()) return;
  if (thread.stop_wanted()) faults_awaited_.insert_or_assign(thread.tid(), Clock::now());
  thread.control().group_stop_due = stays;
  (void)thread.run_on();
}

void Engine::handle_event_stop(Thread& thread) {
  // The thread stopped with its process, was asked to stop, or answers a request late that another
  // stop has made obsolete.
  go(thread);
}

void Engine::handle_exiting(Thread& thread) {
  const auto message = request::event_message(thread.tid());
  if (!settings_.reported.exits || thread.process().client_kills || !message) {
    go(thread);
    return;
  }
  const int status = static_cast<int>(*message);
  const bool signalled = WIFSIGNALED(status);
  post(thread, {.kind = StopKind::kExiting,
                .signal = signalled ? WTERMSIG(status) : 0,
                .exit_code = signalled ? 0 : WEXITSTATUS(status)});
}

void Engine::handle_trace_request(Thread& thread) {
  const Thread* wanted = tasks_.find_thread(thread.trace()->source().trace_request());
  if (wanted == nullptr) {  // it has ended meanwhile
    go(thread);
    return;
  }
  post(thread, {.kind = StopKind::kTraceRequest, .child = wanted->id()});
}

void Engine::handle_syscall(Thread& thread) {
  const auto& wanted = thread.process().catch_syscalls;
  const auto regs = thread.user_regs();
  if (!wanted || !regs) {
    go(thread);
    return;
  }
  const auto number = static_cast<std::int64_t>((*regs)[arch::cpu::kSyscallInProgress]);
  if (!wanted->empty() && !wanted->contains(number)) {
    go(thread);
    return;
  }
  post(thread, {.kind = thread.in_syscall() ? StopKind::kSyscallEntry : StopKind::kSyscallReturn,
                .syscall = number});
}

void Engine::handle_signal(Thread& thread, int signal) {
  if (signal == SIGTRAP && thread.trap_cause() != TrapCause::kOther) {
    handle_trap(thread);
    return;
  }
  pass_or_post(thread, signal);
}

/// Returns true if the signal is passed on without a report. False for SIGTRAP, whose stops also
/// mean breakpoints and steps, and for a fault at a breakpoint: the thread was to stop there, but
/// the memory is not executable. A function that gdb calls returns to such a breakpoint on the
/// stack.
bool Engine::is_passed(Thread& thread, int signal) const {
  if (!settings_.pass_signals.contains(signal) || signal == SIGTRAP) return false;
  if (thread.control().action.kind != ResumeKind::kContinue) return false;
  if (!is_raised_by_insns(signal) || thread.process().breakpoints().empty()) return true;
  const auto pc = thread.pc();
  return !pc || !thread.process().breakpoints().contains(*pc);
}

void Engine::pass_or_post(Thread& thread, int signal) {
  if (settings_.follows_signals) stop_cpu_.note_stop(thread.cpu_pin(), may_pin(thread));
  ThreadControl& control = thread.control();
  const auto own = control.own_signals.find(signal);
  const bool passed = signal == SIGTRAP ? settings_.pass_signals.contains(SIGTRAP) &&
                                              control.action.kind == ResumeKind::kContinue
                                        : is_passed(thread, signal);
  if (own != control.own_signals.end() || passed) {
    if (own != control.own_signals.end()) control.own_signals.erase(own);
    control.resume_signal = signal;
    go(thread);
    return;
  }
  post(thread, {.kind = StopKind::kSignal, .signal = signal});
}

void Engine::handle_trap(Thread& thread) {
  if (handle_debug_registers(thread)) return;
  switch (thread.trap_cause()) {
    case TrapCause::kBreakpointInsn:
      handle_breakpoint_insn(thread);
      return;
    case TrapCause::kHardware:  // of a debug register that was released meanwhile
    case TrapCause::kStep:
    case TrapCause::kHandlerEntry:
      handle_step_done(thread);
      return;
    case TrapCause::kOther:
      post(thread, {.kind = StopKind::kSignal, .signal = SIGTRAP});
      return;
  }
}

void Engine::handle_breakpoint_insn(Thread& thread) {
  const auto pc = thread.pc();
  if (!pc) return;
  const auto hit = breakpoint_hit(thread.process(), *pc);
  if (!hit) {
    post(thread, {.kind = StopKind::kSignal, .signal = SIGTRAP});  // the program's own int3
    return;
  }
  const TraceeAddr address = *hit;
  if (thread.control().stepping_over && thread.control().step_over_at == address) {
    // Below the lifted breakpoint is an int3 of the program's own: this was the step.
    handle_step_done(thread);
    return;
  }
  if (!thread.set_pc(address)) return;
  if (!thread.process().breakpoints().contains(address)) return go(thread);  // removed meanwhile
  if (conditions_.hold(thread.id(), BreakpointKind::kSoftware, address)) {
    post(thread, {.kind = StopKind::kSoftwareBreakpoint, .signal = SIGTRAP});
    return;
  }
  thread.control().step_over_at = address;
  note_short_stop(thread);
  go(thread);
}

bool Engine::handle_debug_registers(Thread& thread) {
  const auto& registers = thread.process().debug_registers();
  if (registers.empty() || thread.trap_cause() == TrapCause::kBreakpointInsn) return false;
  const auto hit = registers.hit(thread.debug_status());
  if (!hit) return false;
  if (hit->access != arch::cpu::DebugAccess::kExecute) {
    post(thread, {.kind = StopKind::kWatchpoint, .signal = SIGTRAP, .address = hit->address});
    return true;
  }
  if (!conditions_.hold(thread.id(), BreakpointKind::kHardware, hit->address)) {
    note_short_stop(thread);
    go(thread);  // the kernel has set RF: the instruction runs now
    return true;
  }
  post(thread, {.kind = StopKind::kHardwareBreakpoint, .signal = SIGTRAP});
  return true;
}

/// Counts a stop after which the thread runs on soon.
void Engine::note_short_stop(Thread& thread) {
  if (may_pin_for_client(thread)) stop_cpu_.note_stop(thread.cpu_pin(), true);
}

void Engine::handle_step_done(Thread& thread) {
  ThreadControl& control = thread.control();
  note_short_stop(thread);
  const bool own = thread.trap_flag().after_stop(thread) && thread.trap_cause() == TrapCause::kStep;
  const auto pc = thread.pc();
  if (!pc) return;
  if (control.no_progress_at == *pc) {
    // This step completed a system call (fork, exec) that a stop had interrupted; no instruction
    // has run yet.
    control.no_progress_at.reset();
    go(thread);
    return;
  }
  control.step_over_at.reset();
  switch (control.action.kind) {
    case ResumeKind::kRangeStep:
      if (*pc >= control.action.range_begin && *pc < control.action.range_end) {
        go(thread);
        return;
      }
      [[fallthrough]];
    case ResumeKind::kStep:
      post(thread, {.kind = StopKind::kStep, .signal = SIGTRAP});
      return;
    default:
      if (own) {
        pass_or_post(thread, SIGTRAP);
      } else {
        go(thread);
      }
      return;
  }
}

}  // namespace backtrail::tracee
