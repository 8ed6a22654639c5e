// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/thread_runner.hpp"

#include <csignal>
#include <vector>

#include <sys/ptrace.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/engine/thread_traces.hpp"
#include "ptrace/os/child_signal.hpp"

namespace backtrail::tracee {
namespace {

/// Returns true if a debug register, for execution or data, has this address.
bool has_debug_register(const Process& process, TraceeAddr address) {
  const arch::cpu::DebugRegisters& registers = process.debug_registers();
  for (unsigned slot = 0; slot < arch::cpu::DebugRegisters::kSlots; ++slot) {
    const bool enabled = (registers.control() >> (2 * slot) & 3) != 0;
    if (enabled && registers.address(slot) == address.value()) return true;
  }
  return false;
}

/// Returns true for a stop inside a system call that returns without waiting for anybody.
bool returns_at_once(const WaitStatus& status) {
  return status.is_event(PTRACE_EVENT_CLONE) || status.is_event(PTRACE_EVENT_FORK);
}

/// Returns true for a stop inside a system call; a single step completes the call without executing
/// an instruction. A client that has waited for the end of a vfork goes on with its own step of the
/// call then.
bool inside_syscall(const WaitStatus& status) {
  return status.kind == WaitKind::kEvent && status.event != PTRACE_EVENT_STOP &&
         status.event != PTRACE_EVENT_VFORK_DONE;
}

/// Returns true if the thread stands at a breakpoint whose condition was false. Forgets the
/// breakpoint if the thread has left it, or if it was removed.
bool must_be_stepped_over(Thread& thread) {
  ThreadControl& control = thread.control();
  if (!control.step_over_at || control.stepping_over) return false;
  // In a group stop the thread stays at the breakpoint until the process continues. A step leaves
  // the stop.
  const bool steps = control.action.kind != ResumeKind::kContinue;
  if (thread.status().is_group_stop() && !steps) return false;
  const auto pc = thread.pc();
  if (!pc || *pc != *control.step_over_at || !thread.process().breakpoints().contains(*pc)) {
    control.step_over_at.reset();
    return false;
  }
  return true;
}

}  // namespace

void ThreadRunner::go(Thread& thread) {
  ThreadControl& control = thread.control();
  ctrl_c_.offer(thread);
  if (thread.stop_wanted() && !control.stepping_over && returns_at_once(thread.status())) {
    leave_call(thread);
    return;
  }
  if (control.client_stop) {
    control.client_stop = false;
    control.stop_wanted = false;
    const int signal = control.client_stop_signal;
    post(thread, {.kind = signal != 0 ? StopKind::kSignal : StopKind::kStopped, .signal = signal});
    return;
  }
  if (control.stop_wanted) {
    control.stop_wanted = false;
    return;
  }
  if (control.stepping_over) return;  // StepOvers goes on with it
  set_going(thread);
}

/// Lets the thread complete the call that it is in before it stops as requested. Otherwise a client
/// that saves registers, calls a function and restores them would undo the call's result.
void ThreadRunner::leave_call(Thread& thread) {
  ThreadControl& control = thread.control();
  if (control.action.kind != ResumeKind::kContinue) {
    if (const auto pc = thread.pc()) control.no_progress_at = *pc;
  }
  set_going(thread);
  if (!thread.stopped()) (void)thread.interrupt();
}

void ThreadRunner::set_going(Thread& thread) {
  if (thread.status().is_event(PTRACE_EVENT_EXIT)) {
    // The thread will execute nothing any more.
    (void)thread.run(RunRequest::kContinue, 0);
    return;
  }
  ThreadControl& control = thread.control();
  if (must_be_stepped_over(thread)) {
    step_overs_.add(thread);
    return ChildSignal::again();
  }
  int signal = std::exchange(control.resume_signal, 0);
  if (signal != 0 && !thread.at_signal_delivery()) {
    control.own_signals.insert(signal);
    thread.send_again(signal);
    signal = 0;
  }
  const bool step = control.action.kind != ResumeKind::kContinue || control.stepping_over;
  const bool in_call = thread.in_syscall() || inside_syscall(thread.status());
  const bool hides = cpu_sharing_.hide(thread, step, in_call);
  const bool syscalls = hides || thread.process().catch_syscalls.has_value();
  // The sender of the stop signal expects the process to stay stopped until SIGCONT, whatever the
  // server did meanwhile.
  const bool stays = thread.status().is_group_stop() && !step;
  if (stays && thread.stay_stopped()) return;
  const bool stops_again = std::exchange(control.group_stop_due, false) || stays;
  if (thread.trace() && !thread.trace()->asked_for()) end_trace_beside(thread);
  Result<void> done;
  if (!thread.trace() || !thread.trace()->source().sees_calls()) {
    thread.process().code_writers->note_unseen_run();
  }
  if (thread.trace()) {
    done = thread.trace()->source().resume(
        thread, SourceResume{.step = step, .syscalls = syscalls, .signal = signal});
    demands_.note_resumed(thread);
  } else {
    if (step) thread.trap_flag().before_step(thread);
    done = thread.run(step       ? RunRequest::kStep
                      : syscalls ? RunRequest::kSyscall
                                 : RunRequest::kContinue,
                      signal);
  }
  if (stops_again) (void)thread.interrupt();
  if (!done) log::ptrace().debug("tid={}: {}", thread.tid(), done.error().message());
}

void ThreadRunner::post(Thread& thread, StopEvent event) {
  events_.put(thread, std::move(event));
  thread.control().stop_wanted = false;
  // This event answers a request to stop. A Ctrl-C goes to another thread.
  if (CtrlC::take(thread)) interrupt();
}

void ThreadRunner::drop_stale_event(Thread& thread, const ResumeAction& action) {
  ThreadControl& control = thread.control();
  if (!control.pending) return;
  const auto pc = thread.pc();
  switch (control.pending->kind) {
    case StopKind::kSoftwareBreakpoint:
      if (pc && thread.process().breakpoints().contains(*pc)) return;
      break;
    case StopKind::kStep:
      if (action.kind != ResumeKind::kContinue) return;
      break;
    case StopKind::kHardwareBreakpoint:
      if (pc && has_debug_register(thread.process(), *pc)) return;
      break;
    case StopKind::kWatchpoint:
      if (has_debug_register(thread.process(), control.pending->address)) return;
      break;
    case StopKind::kStopped:
      break;
    default:
      return;
  }
  events_.drop(thread);
}

/// Carries out kStop.
void ThreadRunner::stop_for_client(Thread& thread) {
  ThreadControl& control = thread.control();
  if (control.pending || control.stop_known) return;
  if (!control.resumed) {  // it was stopped all along, unknown to the client
    control.resumed = true;
    post(thread, {.kind = StopKind::kStopped});
    return;
  }
  // A Ctrl-C answers both.
  if (!std::exchange(control.client_stop, true)) control.client_stop_signal = 0;
  if (thread.stopped()) {
    go(thread);
  } else {
    (void)thread.interrupt();
  }
}

void ThreadRunner::take_order(Thread& thread, const ResumeAction& action) {
  ThreadControl& control = thread.control();
  if (action.kind == ResumeKind::kStop) {
    stop_for_client(thread);
    return;
  }
  if (control.resumed) return;  // it runs already, or its event is pending
  if (control.zombie) {
    events_.note_resumed_ended();
    return;
  }
  drop_stale_event(thread, action);
  control.resumed = true;
  control.stop_known = false;
  control.action = action;
  if (action.signal != 0) {
    if (control.resume_signal != 0) {
      control.own_signals.insert(action.signal);
      thread.send(action.signal);
    } else {
      control.resume_signal = action.signal;
    }
    control.action.signal = 0;
  }
}

void ThreadRunner::resume(std::span<const std::pair<ThreadId, ResumeAction>> orders) {
  struct Started {
    Thread* thread;
    bool stepped_before;
  };
  std::vector<Started> started;
  for (const auto& [id, action] : orders) {
    events_.release_thread_end(id);
    Thread* thread = tasks_.find(id);
    if (thread == nullptr) continue;  // it has ended, which is reported
    const bool before = thread->control().resumed;
    const bool stepped = thread->control().action.kind != ResumeKind::kContinue;
    take_order(*thread, action);
    if (!before && thread->control().resumed) started.push_back({thread, stepped});
  }
  // Before a thread can reach a breakpoint again.
  if (ctrl_c_.due() && !started.empty()) interrupt();
  if (events_.come_first()) return;
  for (const auto& [thread, stepped_before] : started) {
    start(*thread);
    // A client that stepped when the event came goes on with that step, which the call's end ends.
    if (stepped_before) thread->control().no_progress_at.reset();
  }
}

void ThreadRunner::start(Thread& thread) {
  ThreadControl& control = thread.control();
  if (!thread.stopped()) control.stop_wanted = false;  // it waited for its vfork child
  if (!thread.stopped() || control.pending) return;
  control.no_progress_at.reset();
  if (control.action.kind != ResumeKind::kContinue && inside_syscall(thread.status())) {
    if (const auto pc = thread.pc()) control.no_progress_at = *pc;
  }
  set_going(thread);
  thread.process().forget_insn_bytes();
}

void ThreadRunner::interrupt() {
  Thread* chosen = ctrl_c_.ask();
  if (chosen == nullptr) return;
  if (chosen->stopped()) {
    go(*chosen);
  } else {
    (void)chosen->interrupt();
  }
}

void ThreadRunner::let_go_on(pid_t pid, pid_t except) {
  const Process* process = tasks_.find(pid);
  if (process == nullptr) return;
  std::vector<ThreadId> ids;
  for (const auto& thread : process->threads()) {
    if (thread->group() != except) ids.push_back(thread->id());
  }
  for (const ThreadId id : ids) {
    Thread* thread = tasks_.find(id);
    if (thread == nullptr) continue;
    if (!thread->stopped()) {
      // Waits for its vfork child, or for a CPU: nobody wants that it stops later.
      thread->control().stop_wanted = false;
    } else if (thread->control().resumed && !thread->control().pending) {
      go(*thread);
    }
  }
}

void ThreadRunner::let_all_go_on() {
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : tasks_.processes()) pids.push_back(pid);
  for (const pid_t pid : pids) let_go_on(pid);
}

}  // namespace backtrail::tracee
