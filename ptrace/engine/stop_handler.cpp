// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/stop_handler.hpp"

#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/engine/thread_traces.hpp"
#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {

void StopHandler::handle(pid_t tid, const WaitStatus& status) {
  Thread* known = tasks_.find_thread(tid);
  if (known == nullptr) return handle_unknown(tid, status);
  Thread& thread = *known;
  if (auto& logger = log::ptrace(); logger.writes(log::Level::kTrace))
    logger.trace("tid={} {}", tid, status.describe());
  if (status.ended()) {
    kinds_.ends.handle(thread, status);
  } else if (status.stopped()) {
    handle_stop(thread, status);
    // Others may write there from now on.
    if (Thread* now = tasks_.find_thread(tid)) now->process().forget_insn_bytes();
  }
}

void StopHandler::handle_unknown(pid_t tid, const WaitStatus& status) {
  if (detaching_.handle_loose(tid, status)) return;
  if (status.is_event(PTRACE_EVENT_EXEC)) {
    if (Thread* leader = kinds_.execs.adopt_leader(tid)) return handle_stop(*leader, status);
  }
  if (status.stopped() && on_stranger_ && on_stranger_(tid, status)) return;
  // The first stop of a new child may arrive before its parent's event. Ends of threads that were
  // destroyed by an exec are ignored.
  if (status.is_event(PTRACE_EVENT_EXIT)) {
    // The parent was killed before its event.
    (void)orphans_.claim(tid);
    (void)request::cont(tid);
    return;
  }
  if (status.stopped()) orphans_.note(tid, status);
  if (status.ended()) {
    (void)orphans_.claim(tid);
    detaching_.handle_untraced_end(tid, status);
  }
}

void StopHandler::handle_stop(Thread& thread, const WaitStatus& status) {
  thread.note_stop(status);
  if (thread.trace()) thread.trace()->note_stop();
  if (status.is_event(PTRACE_EVENT_EXIT)) thread.control().starting = false;
  if (thread.control().starting) {
    kinds_.births.handle_first_stop(thread);
    return;
  }
  if (status.is_event(PTRACE_EVENT_STOP) && thread.fault_pending()) {
    let_fault_come(thread);
    return;
  }
  if (status.is_event(PTRACE_EVENT_EXEC) && thread.group() == thread.id().pid) {
    kinds_.execs.begin(thread);
  }
  if (status.is_event(PTRACE_EVENT_EXEC) && thread.group() != thread.id().pid) {
    return kinds_.execs.handle_clone(thread);
  }
  StopVerdict verdict = StopVerdict::kReport;
  if (thread.trace()) {
    BranchSource& source = thread.trace()->source();
    source.expect_service(!stop_cpu_.narrowed() && demands_.may_poll());
    verdict = source.on_stop(thread, status);
  }
  if (verdict == StopVerdict::kReport && thread.trap_flag().stepping()) {
    (void)thread.trap_flag().after_stop(thread);
  }
  if (verdict == StopVerdict::kTraceRequest) {
    stop_cpu_.go_back();
    handle_trace_request(thread);
    return;
  }
  if (verdict == StopVerdict::kResumed) return note_resumed(thread);
  if (detaching_.is_leaving(thread.id().pid)) return detaching_.let_leave(thread);
  handle_reported(thread, status);
}

/// Call when the source has resumed the thread.
void StopHandler::note_resumed(Thread& thread) {
  // The source's stop may have swallowed the requested one.
  ThreadControl& control = thread.control();
  const bool stops_again = std::exchange(control.group_stop_due, false);
  if (stops_again || control.stop_wanted || control.client_stop) (void)thread.interrupt();
  BranchSource& source = thread.trace()->source();
  if (source.may_ask() && stop_cpu_.narrowed()) source.let_wait();
  if (source.may_ask()) demands_.note_asking(thread);
  demands_.note_resumed(thread);
}

/// Handles a stop that the thread's source has left to the engine.
void StopHandler::handle_reported(Thread& thread, const WaitStatus& status) {
  switch (status.kind) {
    case WaitKind::kStopped:
      if (!kinds_.signals.is_passed(thread, status.signal) && thread.is_gone()) {
        return (void)thread.run(RunRequest::kContinue, 0);
      }
      kinds_.signals.handle(thread, status.signal);
      return;
    case WaitKind::kSyscall:
      handle_syscall(thread);
      return;
    case WaitKind::kEvent:
      // Threads and processes are born and end.
      if (status.event != PTRACE_EVENT_STOP) stop_cpu_.go_back();
      handle_event(thread, status.event);
      return;
    default:
      return;
  }
}

void StopHandler::handle_event(Thread& thread, int event) {
  switch (event) {
    case PTRACE_EVENT_STOP:
      // The thread stopped with its process, was asked to stop, or answers a request late that
      // another stop has made obsolete.
      runner_.go(thread);
      return;
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
      kinds_.births.handle_new_task(thread);
      return;
    case PTRACE_EVENT_VFORK_DONE:
      kinds_.births.handle_vfork_done(thread);
      return;
    case PTRACE_EVENT_EXEC:
      kinds_.execs.handle(thread);
      return;
    case PTRACE_EVENT_EXIT:
      handle_exiting(thread);
      return;
    default:
      runner_.go(thread);
      return;
  }
}

/// Postpones a stop that arrived before a signal that an instruction has raised, because that
/// signal may be meant for the source alone and the state in between must not be shown. When
/// resumed, the thread executes nothing before it stops with that signal.
void StopHandler::let_fault_come(Thread& thread) {
  const bool stays = thread.status().is_group_stop();
  if (stays && !thread.stop_wanted() && thread.stay_stopped()) return;
  if (thread.stop_wanted()) waiter_.await_fault(thread);
  thread.control().group_stop_due = stays;
  (void)thread.run_on();
}

void StopHandler::handle_exiting(Thread& thread) {
  const auto message = request::event_message(thread.tid());
  if (!settings_.reported.exits || thread.process().client_kills || !message) {
    runner_.go(thread);
    return;
  }
  const int status = static_cast<int>(*message);
  const bool signalled = WIFSIGNALED(status);
  runner_.post(thread, {.kind = StopKind::kExiting,
                        .signal = signalled ? WTERMSIG(status) : 0,
                        .exit_code = signalled ? 0 : WEXITSTATUS(status)});
}

void StopHandler::handle_trace_request(Thread& thread) {
  const Thread* wanted = tasks_.find_thread(thread.trace()->source().trace_request());
  if (wanted == nullptr) {  // it has ended meanwhile
    runner_.go(thread);
    return;
  }
  runner_.post(thread, {.kind = StopKind::kTraceRequest, .child = wanted->id()});
}

void StopHandler::handle_syscall(Thread& thread) {
  const auto& wanted = thread.process().catch_syscalls;
  const auto regs = thread.user_regs();
  if (!wanted || !regs) {
    runner_.go(thread);
    return;
  }
  const auto number = static_cast<std::int64_t>((*regs)[arch::cpu::kSyscallInProgress]);
  if (!wanted->empty() && !wanted->contains(number)) {
    runner_.go(thread);
    return;
  }
  runner_.post(thread,
               {.kind = thread.in_syscall() ? StopKind::kSyscallEntry : StopKind::kSyscallReturn,
                .syscall = number});
}

}  // namespace backtrail::tracee
