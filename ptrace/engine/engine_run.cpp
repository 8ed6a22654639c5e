// SPDX-License-Identifier: Apache-2.0
// Resumes and stops threads.

#include <algorithm>
#include <csignal>
#include <tuple>

#include <poll.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::chrono::milliseconds kStopLimit{5'000};
constexpr std::chrono::milliseconds kWaitSlice{20};
/// Wait slice while a thread must be stopped soon.
constexpr std::chrono::milliseconds kShortSlice{1};
/// Number of stops handled before the client's input is checked again.
constexpr int kPumpBatch = 256;
/// How long to look for further requests after a thread was served. A stop and a wake-up take both
/// sides about as long.
constexpr std::chrono::microseconds kServeFor{50};

bool input_waits(int fd) {
  if (fd < 0) return false;
  pollfd request{fd, POLLIN, 0};
  return ::poll(&request, 1, 0) > 0;
}

char state_of(pid_t tid) {
  const auto stat = ProcFs{}.stat(tid);
  return stat ? stat->state : '?';
}

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
/// an instruction.
bool inside_syscall(const WaitStatus& status) {
  return status.kind == WaitKind::kEvent && status.event != PTRACE_EVENT_STOP;
}

}  // namespace

void Engine::go(Thread& thread) {
  ThreadControl& control = thread.control();
  if (interrupt_due_ && control.resumed && !thread.process().hidden) {
    interrupt_due_ = false;
    control.client_stop = true;
    control.client_stop_signal = SIGINT;
  }
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
  if (control.stepping_over) return;  // step_over_one() goes on with it
  set_going(thread);
}

/// Lets the thread complete the call that it is in before it stops as requested. Otherwise a client
/// that saves registers, calls a function and restores them would undo the call's result.
void Engine::leave_call(Thread& thread) {
  ThreadControl& control = thread.control();
  if (control.action.kind != ResumeKind::kContinue) {
    if (const auto pc = thread.pc()) control.no_progress_at = *pc;
  }
  set_going(thread);
  if (!thread.stopped()) (void)thread.interrupt();
}

void Engine::set_going(Thread& thread) {
  if (thread.status().is_event(PTRACE_EVENT_EXIT)) {
    // The thread will execute nothing any more.
    (void)thread.run(RunRequest::kContinue, 0);
    return;
  }
  ThreadControl& control = thread.control();
  if (step_over_queue_.wait(thread)) return ChildSignal::again();
  int signal = std::exchange(control.resume_signal, 0);
  if (signal != 0 && !thread.at_signal_delivery()) {
    control.own_signals.insert(signal);
    thread.send(signal);
    signal = 0;
  }
  const bool step = control.action.kind != ResumeKind::kContinue || control.stepping_over;
  const bool syscalls = thread.process().catch_syscalls.has_value() || hide_affinity(thread, step);
  // The sender of the stop signal expects the process to stay stopped until SIGCONT, whatever the
  // server did meanwhile.
  const bool stays = thread.status().is_group_stop() && !step;
  if (stays && thread.stay_stopped()) return;
  const bool stops_again = std::exchange(control.group_stop_due, false) || stays;
  if (thread.trace() && !thread.trace()->asked_for()) end_trace_beside(thread);
  Result<void> done;
  if (!thread.trace() || !thread.trace()->source().sees_calls()) {
    thread.process().code_writers->note_unseen_calls();
  }
  if (thread.trace()) {
    done = thread.trace()->source().resume(
        thread, SourceResume{.step = step, .syscalls = syscalls, .signal = signal});
    note_due(thread);
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

/// Call before a thread runs on. While affinities are narrowed, sees to it that its process does
/// not find out. Returns true if the thread must stop at its next system call for that.
bool Engine::hide_affinity(Thread& thread, bool step) {
  if (!stop_cpu_.narrows()) return false;
  const BranchSource* source = thread.source();
  if (source != nullptr && source->sees_calls()) return false;
  const bool unseen = source != nullptr && !step;  // hardware records, and sees no call
  const bool calls = thread.in_syscall() || inside_syscall(thread.status()) ||
                     (step && arch::cpu::is_syscall(
                                  thread.process().insn_bytes(thread.pc().value_or(TraceeAddr{}))));
  if (!thread.cpu_pin()->active() || unseen || calls) {
    stop_cpu_.go_back();
    return false;
  }
  // The thread may run for long, without a stop at which its affinity could be restored.
  if (!step) wake_ups_.wake_soon();
  return !step;
}

void Engine::drop_stale_event(Thread& thread, const ResumeAction& action) {
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

void Engine::resume_order(Thread& thread, const ResumeAction& action) {
  ThreadControl& control = thread.control();
  if (action.kind == ResumeKind::kStop) {
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

Result<void> Engine::resume(std::span<const std::pair<ThreadId, ResumeAction>> orders) {
  std::vector<Thread*> started;
  for (const auto& [id, action] : orders) {
    Thread* thread = tasks_.find(id);
    if (thread == nullptr) continue;  // it has ended, which is reported
    const bool before = thread->control().resumed;
    resume_order(*thread, action);
    if (!before && thread->control().resumed) started.push_back(thread);
  }
  // Before a thread can reach a breakpoint again.
  if (interrupt_due_ && !started.empty()) interrupt();
  // In all-stop, a waiting event comes first, and then no thread runs.
  if (events_.come_first()) return {};
  for (Thread* thread : started) {
    ThreadControl& control = thread->control();
    if (!thread->stopped()) control.stop_wanted = false;  // it waited for its vfork child
    if (!thread->stopped() || control.pending) continue;
    control.no_progress_at.reset();
    if (control.action.kind != ResumeKind::kContinue && inside_syscall(thread->status())) {
      if (const auto pc = thread->pc()) control.no_progress_at = *pc;
    }
    set_going(*thread);
    thread->process().forget_insn_bytes();
  }
  return {};
}

/// Returns a thread that can answer a Ctrl-C; null if there is none. Prefers leaders, which usually
/// live longest; among several processes, the first.
Thread* Engine::interruptible() {
  const auto rank = [](const ThreadId& id) { return std::tuple{id.pid, id.tid != id.pid, id.tid}; };
  Thread* chosen = nullptr;
  for (const auto& [tid, thread] : tasks_.threads()) {
    const ThreadControl& control = thread->control();
    if (!control.resumed || control.pending || thread->process().hidden) continue;
    if (control.zombie) continue;
    if (control.vfork_parent && !thread->stopped()) continue;
    if (chosen == nullptr || rank(thread->id()) < rank(chosen->id())) chosen = thread;
  }
  return chosen;
}

/// Ends the thread's obligation to stop for the client. Returns true if a Ctrl-C is to be answered
/// by another thread instead.
bool Engine::take_ctrl_c(Thread& thread) {
  ThreadControl& control = thread.control();
  const bool asked = std::exchange(control.client_stop, false);
  return std::exchange(control.client_stop_signal, 0) != 0 && asked;
}

void Engine::forget_interrupt() {
  interrupt_due_ = false;
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (thread->control().client_stop_signal != 0) (void)take_ctrl_c(*thread);
  }
}

/// Call when the client turns to another program: a Ctrl-C that nobody could answer was meant for
/// the former one.
void Engine::drop_stale_ctrl_c() {
  if (!tasks_.any_running()) interrupt_due_ = false;
}

void Engine::interrupt() {
  Thread* chosen = interruptible();
  interrupt_due_ = chosen == nullptr && !tasks_.known().empty();
  if (chosen == nullptr) return;
  chosen->control().client_stop = true;
  chosen->control().client_stop_signal = SIGINT;
  if (chosen->stopped()) {
    go(*chosen);
  } else {
    (void)chosen->interrupt();
  }
}

void Engine::ask_to_stop(Thread& thread) {
  if (thread.stopped() && !thread.control().starting) return;
  thread.control().stop_wanted = true;
  (void)thread.interrupt();
}

/// Repeats stops that were postponed for a signal that does not come. A program that begins to
/// ignore a signal discards pending ones (signal(7)), and so does restoring the action that a
/// single step reset.
void Engine::ask_again() {
  stop_who_is_due();
  if (faults_awaited_.empty()) return;
  const auto now = Clock::now();
  std::erase_if(faults_awaited_, [&](const auto& awaited) {
    const auto& [tid, since] = awaited;
    Thread* thread = tasks_.find_thread(tid);
    if (thread == nullptr || thread->stopped()) return true;
    if (now - since < kWaitSlice) return false;
    if (thread->stop_wanted()) (void)thread->interrupt();
    return true;
  });
}

void Engine::note_due(Thread& thread) {
  if (thread.trace()->source().stop_due()) due_.insert(thread.tid());
}

std::chrono::milliseconds Engine::wait_slice() const {
  return due_.empty() ? kWaitSlice : kShortSlice;
}

void Engine::stop_who_is_due() {
  if (due_.empty()) return;
  const auto now = Clock::now();
  std::erase_if(due_, [&](pid_t tid) {
    Thread* thread = tasks_.find_thread(tid);
    if (thread == nullptr || !thread->trace()) return true;
    const auto due = thread->trace()->source().stop_due();
    if (due && now < *due) return false;
    if (due && !thread->stopped()) (void)thread->interrupt();
    return true;
  });
}

bool Engine::wait_until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  bool woken = false;
  for (;;) {
    while (!done() && wait_one()) {
    }
    ask_again();
    const bool is_done = done();
    if (is_done || Clock::now() >= deadline) {
      // Other events are left to pump().
      if (woken) ChildSignal::again();
      return is_done;
    }
    if (child_signal_.wait(-1, wait_slice()) == ChildSignal::Woken::kTimeout) {
      bury_zombie_leaders();
    } else {
      woken = true;
    }
  }
}

void Engine::stop_threads(const std::function<bool(const Thread&)>& which) {
  stop_cpu_.go_back();
  const auto still_runs = [&](const Thread& thread) {
    const ThreadControl& control = thread.control();
    return which(thread) && (!thread.stopped() || control.starting) && !control.zombie &&
           !control.vfork_parent;
  };
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (which(*thread)) ask_to_stop(*thread);
  }
  // Waits for each thread by its id, and only for those still running. Looking at all threads after
  // each stop, here or in the kernel's search for any with news, would mean a million looks for a
  // thousand threads.
  std::vector<pid_t> awaited;
  // For threads created meanwhile, and those that stopped and were resumed because of another
  // event.
  const auto ask_who_was_not = [&](Thread& thread) {
    if (!thread.control().stop_wanted && !thread.control().starting) ask_to_stop(thread);
  };
  const auto look_at_all = [&] {
    for (const auto& [tid, thread] : tasks_.threads()) {
      if (!still_runs(*thread)) continue;
      awaited.push_back(tid);
      ask_who_was_not(*thread);
    }
  };
  const auto running = [&](pid_t tid) -> Thread* {
    Thread* thread = tasks_.find_thread(tid);
    return thread == nullptr || !still_runs(*thread) ? nullptr : thread;
  };
  const auto all_stay = [&] {
    std::erase_if(awaited, [&](pid_t tid) {
      while (Thread* thread = running(tid)) {
        if (wait_one(tid)) continue;
        ask_who_was_not(*thread);
        return false;
      }
      return true;
    });
    if (awaited.empty()) look_at_all();
    return awaited.empty();
  };
  const auto starves = [&](pid_t tid) { return running(tid) != nullptr && state_of(tid) == 'R'; };
  bool stay = wait_until(all_stay, kStopLimit);
  for (auto waited = kStopLimit; !stay && waited < kStarvedLimit; waited += kStopLimit) {
    if (std::none_of(awaited.begin(), awaited.end(), starves)) break;
    stay = wait_until(all_stay, kStopLimit);
  }
  if (stay) return;
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (!still_runs(*thread)) continue;
    log::ptrace().error("tid={} does not stop (state {}); going on without it", tid, state_of(tid));
  }
}

void Engine::stop_all() {
  stop_threads([](const Thread&) { return true; });
}

void Engine::while_stopped(pid_t pid, const std::function<void()>& action) {
  stop_threads([=](const Thread& t) { return t.id().pid == pid; });
  action();
  let_go_on(pid);
}

/// Resumes the process's threads that are stopped for no reason of the client.
/// @param except The threads of this group (Thread::group()) stay as they are; 0: none does.
void Engine::let_go_on(pid_t pid, pid_t except) {
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

void Engine::let_all_go_on() {
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : tasks_.processes()) pids.push_back(pid);
  for (const pid_t pid : pids) let_go_on(pid);
}

bool Engine::executes_in_software() const {
  return std::ranges::any_of(tasks_.threads(), [](const auto& entry) {
    Thread& thread = *entry.second;
    return !thread.stopped() &&
           (thread.control().action.kind == ResumeKind::kRangeStep ||
            (thread.trace() && (thread.trace()->source().kind() == SourceKind::kStep ||
                                thread.trace()->source().kind() == SourceKind::kCache)));
  });
}

bool Engine::serve_asking() {
  if (asking_.empty()) return false;
  // Polling pays only on a CPU that nobody else needs, least of all the thread.
  const auto until =
      Clock::now() +
      (!stop_cpu_.narrowed() && spare_cpu_.is_there() ? kServeFor : Clock::duration{});
  do {
    for (const pid_t tid : asking_) {
      Thread* thread = tasks_.find_thread(tid);
      if (thread == nullptr || thread->stopped()) continue;
      if (thread->trace() && thread->trace()->source().serve(*thread)) return true;
    }
    if (wait_one()) return true;
  } while (Clock::now() < until);
  for (const pid_t tid : asking_) {
    Thread* thread = tasks_.find_thread(tid);
    if (thread != nullptr && thread->trace()) thread->trace()->source().let_wait();
  }
  asking_.clear();
  return false;
}

/// The kernel reports threads in its own order, so a few threads that always have news hide the
/// others from wait_one(). As often as is cheap, each thread is asked for separately.
void Engine::ask_each(int handled) {
  handled_since_asked_ += static_cast<std::size_t>(handled);
  if (handled_since_asked_ < tasks_.threads().size()) return;
  handled_since_asked_ = 0;
  std::vector<pid_t> running;
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (!thread->stopped()) running.push_back(tid);
  }
  for (const pid_t tid : running) wait_one(tid);
}

bool Engine::wait_in_turn() {
  if (!stop_cpu_.in_turns() || events_.any()) return false;
  ::sched_yield();
  return wait_one();
}

void Engine::pump(int input_fd) {
  child_signal_.drain();
  const auto until = Clock::now() + kWaitSlice;
  for (;;) {
    stop_cpu_.look();
    read_buffers();
    int handled = 0;
    while (handled < kPumpBatch && (wait_one() || serve_asking() || wait_in_turn())) ++handled;
    if (handled == kPumpBatch) {
      ask_each(handled);
      ChildSignal::again();  // there may be more
    }
    ask_again();
    let_orphans_go();
    if (events_.any()) return;
    if (handled == 0 && look_at_leaders()) return;
    if (do_step_overs()) {
      if (input_waits(input_fd) || Clock::now() >= until) return ChildSignal::again();
      continue;
    }
    const bool may_wait = executes_in_software() || !faults_awaited_.empty();
    if (!may_wait) {
      if (handled != 0) (void)look_at_leaders();
      return;
    }
    if (child_signal_.wait(input_fd, wait_slice()) == ChildSignal::Woken::kInput) return;
  }
}

std::optional<StopEvent> Engine::take_event() {
  if (!events_.any()) return events_.take_no_resumed();
  const bool non_stop = settings_.non_stop;
  if (!non_stop) stop_all();
  std::optional<StopEvent> event = events_.take();
  // The thread with the event was ended by another thread's exec, so there is no event.
  if (!non_stop && !event) let_all_go_on();
  if (!non_stop && event) {
    events_.forget_resumed_ended();
    for (const auto& [tid, thread] : tasks_.threads()) {
      ThreadControl& control = thread->control();
      control.resumed = false;
      // Another event came before the Ctrl-C.
      if (take_ctrl_c(*thread)) interrupt_due_ = true;
    }
  }
  return event;
}

bool Engine::is_running(ThreadId id) const {
  const Thread* thread = tasks_.find(id);
  return thread != nullptr && thread->control().resumed && !thread->control().pending;
}

}  // namespace backtrail::tracee
