// SPDX-License-Identifier: Apache-2.0
// Interprets the kernel's wait statuses.

#include <array>
#include <bit>
#include <csignal>

#include <linux/kcmp.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/breakpoint_hit.hpp"

namespace backtrail::tracee {
namespace {

/// @param otherwise The answer if the kernel cannot tell.
bool shares_memory(pid_t one, pid_t other, bool otherwise) {
  const auto order = ::syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0);
  return order < 0 ? otherwise : order == 0;
}

/// Returns true if the call that the thread is in and that made a process may have given it the
/// thread's memory.
bool may_share_memory(Thread& parent) {
  const auto regs = parent.user_regs();
  if (!regs || parent.process().isa() != arch::Isa::kAmd64) return true;
  std::uint64_t flags = syscall_argument(*regs, 0);
  switch ((*regs)[arch::cpu::kSyscallInProgress]) {
    case SYS_fork:
      return false;
    case SYS_clone:
      return (flags & CLONE_VM) != 0;
    case SYS_clone3: {
      std::array<std::uint8_t, sizeof flags> bytes{};
      if (parent.process().read_memory(TraceeAddr{flags}, bytes) != bytes.size()) return true;
      flags = std::bit_cast<std::uint64_t>(bytes);
      return (flags & CLONE_VM) != 0;
    }
    default:
      return true;
  }
}

/// Unblocks signals that were held only from the thread that created this one.
void unblock(const Thread& thread, std::uint64_t signals) {
  if (signals == 0) return;
  const auto mask = request::read_signal_mask(thread.tid());
  if (mask) (void)request::write_signal_mask(thread.tid(), *mask & ~signals);
}

/// Returns true if the thread was killed since it stopped, for example by an exec; its stop then
/// has no consequence.
bool is_gone(const Thread& thread) {
  const auto pc = request::peek_user_reg(thread.tid(), arch::cpu::UserReg::kRip);
  return !pc && pc.error().is(TraceErrc::kTraceeGone);
}

/// Returns true if the thread's affinity may be narrowed: its source sees every system call before
/// it is made.
bool may_pin(Thread& thread) {
  const BranchSource* source = thread.source();
  if (source == nullptr) return false;
  const bool sees_calls =
      source->kind() == SourceKind::kCache || source->kind() == SourceKind::kStep;
  return sees_calls && thread.process().own_affinity.may_be_narrowed();
}

}  // namespace

bool Engine::wait_one(pid_t tid) {
  int raw = 0;
  const pid_t found = ::waitpid(tid, &raw, __WALL | WNOHANG);
  if (found <= 0) return false;
  handle(found, WaitStatus::decode(raw));
  return true;
}

void Engine::handle(pid_t tid, const WaitStatus& status) {
  const auto found = by_tid_.find(tid);
  if (found == by_tid_.end()) {
    if (loose_.erase(tid) != 0) {
      const bool signalled = status.kind == WaitKind::kStopped;
      if (status.stopped()) (void)request::detach(tid, signalled ? status.signal : 0);
      return;
    }
    if (status.stopped() && on_stranger && on_stranger(tid, status)) return;
    // The first stop of a new child may arrive before its parent's event. Ends of threads that were
    // destroyed by an exec are ignored.
    if (status.is_event(PTRACE_EVENT_EXIT)) {
      // The parent was killed before its event.
      unclaimed_.erase(tid);
      (void)request::cont(tid);
      return;
    }
    if (status.stopped()) unclaimed_.insert_or_assign(tid, status);
    if (status.ended() && let_go_.erase(tid) != 0) {
      ended_.push_back({.order = next_order_++, .event = StopEvent::end_of({tid, tid}, status)});
    }
    return;
  }
  Thread& thread = *found->second;
  if (auto& logger = log::ptrace(); logger.writes(log::Level::kTrace))
    logger.trace("tid={} {}", tid, status.describe());
  if (status.ended()) {
    handle_end(thread, status);
  } else if (status.stopped()) {
    handle_stop(thread, status);
    // Others may write there from now on.
    if (const auto now = by_tid_.find(tid); now != by_tid_.end()) {
      now->second->process().forget_insn_bytes();
    }
  }
}

void Engine::post(Thread& thread, StopEvent event) {
  event.thread = thread.id();
  ThreadControl& control = thread.control();
  control.pending = std::move(event);
  posted_.erase(control.pending_order);
  control.pending_order = next_order_++;
  posted_.emplace(control.pending_order, thread.tid());
  control.stop_wanted = false;
  // This event answers a request to stop. A Ctrl-C goes to another thread.
  if (std::exchange(control.client_stop, false) && control.client_stop_signal != 0) interrupt();
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
      if (!is_passed(thread, status.signal) && is_gone(thread)) {
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
      handle_clone(thread);
      return;
    case PTRACE_EVENT_FORK:
      handle_fork(thread, false);
      return;
    case PTRACE_EVENT_VFORK:
      handle_fork(thread, true);
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

void Engine::handle_first_stop(Thread& thread) {
  ThreadControl& control = thread.control();
  control.starting = false;
  unblock(thread, std::exchange(control.held_at_birth, 0));
  record_from_birth(thread);
  if (reported.threads) {
    post(thread, {.kind = StopKind::kThreadCreated});
    return;
  }
  go(thread);
}

void Engine::report_threads(bool on) {
  if (std::exchange(reported.threads, on) == on || on) return;
  std::erase_if(ended_, [](const auto& end) { return end.event.kind == StopKind::kThreadExited; });
  for (const auto& [tid, thread] : by_tid_) {
    const auto& pending = thread->control().pending;
    if (!pending || pending->kind != StopKind::kThreadCreated) continue;
    drop_pending(*thread);
    if (thread->control().resumed) go(*thread);
  }
}

void Engine::handle_clone(Thread& parent) {
  const auto message = request::event_message(parent.tid());
  if (!message) return;
  const auto tid = static_cast<pid_t>(*message);
  const auto status = ProcFs{}.status(tid);
  if (!status) {  // killed before it ran
    unclaimed_.erase(tid);
    go(parent);
    return;
  }
  // Without CLONE_THREAD it is a process of its own.
  if (status->tgid != parent.group() && !shares_memory(parent.tid(), tid, false)) {
    handle_fork(parent, false);
    return;
  }
  Thread& thread = add_thread(parent.process(), tid);
  thread.set_group(status->tgid);
  ThreadControl& control = thread.control();
  control.starting = true;
  control.resumed = true;
  if (parent.trace()) control.held_at_birth = parent.trace()->source().held_signals();
  control.stop_wanted = parent.control().stop_wanted;
  if (const auto early = unclaimed_.find(tid); early != unclaimed_.end()) {
    const WaitStatus first = early->second;
    unclaimed_.erase(early);
    handle_stop(thread, first);
  }
  go(parent);
}

Result<Process*> Engine::adopt_child(Thread& parent, pid_t child_pid) {
  // The child stops before it executes an instruction.
  if (unclaimed_.erase(child_pid) == 0) BT_CHECKED(next_stop(child_pid));
  BT_TRY(
      std::unique_ptr<Process> opened,
      Process::open(child_pid, child_pid, parent.process().attached(), cache::process_observer()));
  Process& child = *(processes_[child_pid] = std::move(opened));
  child.hidden = true;
  child.inherit_from(parent.process());
  Thread& thread = add_thread(child, child_pid);
  thread.note_stop(WaitStatus::decode(PTRACE_EVENT_STOP << 16 | SIGTRAP << 8 | 0x7f));
  thread.control().last_stop = {.thread = thread.id(), .kind = StopKind::kStopped};
  if (parent.trace()) unblock(thread, parent.trace()->source().held_signals());
  return &child;
}

/// Call for a child that could not be adopted: it must not stay stopped.
void Engine::let_child_go(pid_t child_pid, const Error& why) {
  if (why.is(TraceErrc::kTraceeGone)) {
    log::ptrace().debug("pid={}: {}", child_pid, why.message());
    return;
  }
  log::ptrace().warn("pid={}: the forked child runs on by itself, unrecorded: {}", child_pid,
                     why.message());
  (void)request::detach(child_pid);
}

void Engine::release_child(Process& child) {
  child.code_writers->note_unseen_calls();
  for (const auto& thread : child.threads()) end_trace(*thread);
  if (auto lifted = child.breakpoints().lift_all(); !lifted) {
    log::ptrace().warn("pid={}: breakpoints stay in a forked child: {}", child.pid(),
                       lifted.error().message());
  }
  (void)child.address_limit.lower(child.pid());
  (void)request::detach(child.pid());
  forget_process(child.pid());
}

void Engine::handle_fork(Thread& parent, bool vfork) {
  const auto message = request::event_message(parent.tid());
  if (!message) return;
  const auto child_pid = static_cast<pid_t>(*message);
  const auto child = adopt_child(parent, child_pid);
  if (!child) {
    parent.process().code_writers->note_unseen_calls();
    let_child_go(child_pid, child.error());
    go(parent);
    return;
  }
  if (vfork) {
    parent.control().vfork_parent = true;
    // The thread parts and translations lie in memory that both processes share. If the kernel
    // cannot tell, assume sharing, as every libc uses vfork.
    if (shares_memory(parent.id().pid, child_pid, true)) {
      cache::share_space(parent.process(), **child);
    }
  } else {
    const auto& writers = parent.process().code_writers;
    if (shares_memory(parent.id().pid, child_pid, may_share_memory(parent))) {
      writers->note_foreign_writes();
    }
    if (const auto& space = parent.process().cache_space) space->keep_for_child();
  }
  if (vfork ? reported.vfork : reported.fork) {
    record_from_start(**child);
    post(parent,
         {.kind = vfork ? StopKind::kVfork : StopKind::kFork, .child = {child_pid, child_pid}});
    return;
  }
  if (vfork) {
    // The memory is shared, so breakpoints lifted here are lifted there.
    (void)parent.process().breakpoints().lift_all();
    parent.process().lifted_for_vfork = true;
  }
  release_child(**child);
  go(parent);
}

void Engine::handle_vfork_done(Thread& thread) {
  thread.control().vfork_parent = false;
  Process& process = thread.process();
  if (process.lifted_for_vfork) {
    process.lifted_for_vfork = false;
    (void)process.breakpoints().reinsert_all();
  }
  if (reported.vfork) {
    post(thread, {.kind = StopKind::kVforkDone});
    return;
  }
  go(thread);
}

void Engine::handle_exec(Thread& thread) {
  const pid_t pid = thread.id().pid;
  Thread* survivor = &thread;
  // If a thread other than the leader execs, it takes over the leader's id (ptrace(2), "execve(2)
  // under ptrace").
  if (const auto former = request::event_message(pid)) {
    const auto found = by_tid_.find(static_cast<pid_t>(*former));
    if (found != by_tid_.end() && found->second->id().pid == pid && found->second != &thread) {
      survivor = found->second;
      survivor->note_stop(thread.status());
      if (survivor->trace() && thread.trace() && thread.trace()->asked_for()) {
        survivor->trace()->set_asked_for(true);  // the client knows the leader's id
      }
      if (survivor->trace()) {
        survivor->rename(pid);
        survivor->trace()->spare_history();
        (void)survivor->trace()->source().on_stop(*survivor, thread.status());
      }
    }
  }
  Process& process = survivor->process();
  for (const auto& each : process.threads()) {
    if (each.get() == survivor) continue;
    release_unannounced_child(*each);
    if (each->group() != pid) let_clone_go_soon(*each);
  }
  std::erase_if(by_tid_, [=](const auto& entry) { return entry.second->id().pid == pid; });
  std::erase_if(conditions_, [=](const auto& entry) { return entry.first.first == pid; });
  process.become_new_image(*survivor);
  by_tid_[pid] = survivor;
  survivor->control().vfork_parent = false;
  survivor->control().stepping_over = false;
  survivor->control().step_over_at.reset();
  survivor->control().queued = false;  // queued under its former id
  if (reported.exec) {
    post(*survivor, {.kind = StopKind::kExec, .exec_path = ProcFs{}.exe(pid).value_or("")});
    return;
  }
  go(*survivor);
}

void Engine::handle_exiting(Thread& thread) {
  const auto message = request::event_message(thread.tid());
  if (!reported.exits || !message) {
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
  const auto wanted = by_tid_.find(thread.trace()->source().trace_request());
  if (wanted == by_tid_.end()) {  // it has ended meanwhile
    go(thread);
    return;
  }
  post(thread, {.kind = StopKind::kTraceRequest, .child = wanted->second->id()});
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
  if (!pass_signals.contains(signal) || signal == SIGTRAP) return false;
  if (thread.control().action.kind != ResumeKind::kContinue) return false;
  const bool fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL;
  if (!fault || thread.process().breakpoints().empty()) return true;
  const auto pc = thread.pc();
  return !pc || !thread.process().breakpoints().contains(*pc);
}

void Engine::pass_or_post(Thread& thread, int signal) {
  if (follows_signals_) stop_cpu_.note_signal(thread.cpu_pin(), may_pin(thread));
  ThreadControl& control = thread.control();
  const auto own = control.own_signals.find(signal);
  const bool passed = signal == SIGTRAP ? pass_signals.contains(SIGTRAP) &&
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

bool Engine::condition_holds(Thread& thread, BreakpointKind kind, TraceeAddr address) const {
  const auto found = conditions_.find({thread.id().pid, {kind, address}});
  return found == conditions_.end() || found->second(thread.id());
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
  if (condition_holds(thread, BreakpointKind::kSoftware, address)) {
    post(thread, {.kind = StopKind::kSoftwareBreakpoint, .signal = SIGTRAP});
    return;
  }
  thread.control().step_over_at = address;
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
  if (!condition_holds(thread, BreakpointKind::kHardware, hit->address)) {
    go(thread);  // the kernel has set RF: the instruction runs now
    return true;
  }
  post(thread, {.kind = StopKind::kHardwareBreakpoint, .signal = SIGTRAP});
  return true;
}

void Engine::handle_step_done(Thread& thread) {
  ThreadControl& control = thread.control();
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
