// SPDX-License-Identifier: Apache-2.0
// Threads and processes that end, also those that nobody asked to end.

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "arch/base/log.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::tracee {
namespace {

/// Returns false if the whole process is ending, as far as that can be known.
bool others_live_on(const Process& process, const Thread& leader) {
  for (const auto& thread : process.threads()) {
    if (thread.get() == &leader) continue;
    if (!thread->stopped() || !thread->is_gone()) return true;
  }
  return false;
}

/// Returns true if processes that share the memory live on after the leader, the last thread of its
/// own process, has ended.
bool lives_on(const Process& process) {
  return std::ranges::any_of(process.threads(),
                             [&](const auto& thread) { return thread->group() != process.pid(); });
}

}  // namespace

void Engine::handle_end(Thread& thread, const WaitStatus& status) {
  stop_cpu_.go_back();
  const ThreadId id = thread.id();
  // The client cannot ask for this history any more, and decoding it would need code that is gone.
  if (thread.trace()) thread.trace()->end();
  const StopEvent event = StopEvent::end_of(id, status);
  Process& process = thread.process();
  const bool last = process.threads().size() == 1;
  if (id.tid == id.pid && !last && lives_on(process)) process.end = event;
  if ((id.tid == id.pid && !process.end) || (last && process.end)) {
    // The end of a child that the client does not know is not reported.
    if (!process.hidden || let_go_.erase(id.pid) != 0)
      note_end(process, process.end.value_or(event));
    release_unannounced_children(process);
    forget_process(id.pid);
    return;
  }
  release_unannounced_child(thread);
  // A Ctrl-C is meant for the program, so another thread answers it.
  const bool asked_to_stop =
      thread.control().client_stop && thread.control().client_stop_signal != 0;
  note_thread_end(thread, event.exit_code);
  forget_thread(thread);
  if (asked_to_stop) interrupt();
}

void Engine::note_thread_end(Thread& thread, int exit_code) {
  if (!thread.control().resumed) return;
  resumed_one_ended_ = true;
  if (!reported.threads || thread.process().hidden) return;
  ended_.push_back(
      {.order = next_order_++,
       .event = {.thread = thread.id(), .kind = StopKind::kThreadExited, .exit_code = exit_code}});
}

void Engine::note_end(const Process& process, const StopEvent& end) {
  UntoldEnd untold{
      .order = next_order_++, .event = end, .attached = process.attached(), .threads = {}};
  if (!process.hidden) {
    for (const auto& thread : process.threads()) untold.threads.push_back(thread->id());
  }
  ended_.push_back(std::move(untold));
}

std::vector<const UntoldEnd*> Engine::untold_ends() const {
  std::vector<const UntoldEnd*> ends;
  for (const UntoldEnd& end : ended_) {
    if (!end.threads.empty()) ends.push_back(&end);
  }
  return ends;
}

/// Returns true if there was such an end.
bool Engine::forget_untold_end(pid_t pid) {
  return std::erase_if(ended_, [=](const UntoldEnd& end) {
           return !end.threads.empty() && end.event.thread.pid == pid;
         }) != 0;
}

void Engine::kill_unannounced_children(const Process& process) {
  std::vector<pid_t> children;
  for (const auto& thread : process.threads()) {
    const Process* child = unannounced_child(*thread);
    if (child != nullptr) children.push_back(child->pid());
  }
  for (const pid_t child : children) (void)kill(child);
}

/// Returns the child whose fork is the thread's pending event; null if there is none.
Process* Engine::unannounced_child(const Thread& thread) const {
  const auto& pending = thread.control().pending;
  if (!pending || (pending->kind != StopKind::kFork && pending->kind != StopKind::kVfork)) {
    return nullptr;
  }
  Process* child = find(pending->child.pid);
  return child != nullptr && child->hidden ? child : nullptr;
}

/// Call when the thread's pending event will not be handed out. If it is a fork, the client will
/// never ask to resume the child, so it runs on by itself.
void Engine::release_unannounced_child(const Thread& thread) {
  if (Process* child = unannounced_child(thread)) release_child(*child);
}

void Engine::release_unannounced_children(const Process& process) {
  for (const auto& thread : process.threads()) release_unannounced_child(*thread);
}

/// Returns true if the kernel is ending a thread: its last wait status is on its way. A thread that
/// calls exit_group() may have ended before the others.
bool Engine::any_ends() const {
  return std::ranges::any_of(by_tid_, [](const auto& entry) {
    const Thread& thread = *entry.second;
    if (thread.control().zombie || thread.control().vfork_parent) return false;
    return thread.stopped() ? thread.is_gone() : thread.state() == Thread::State::kRunning;
  });
}

/// Notices leaders that have ended before other threads of their processes. The kernel keeps their
/// exit statuses until the last thread has ended. Returns true if there was one.
bool Engine::bury_zombie_leaders() {
  const ProcFs proc;
  bool any = false;
  for (const auto& [pid, process] : processes_) {
    Thread* leader = process->find(pid);
    if (leader == nullptr || leader->stopped() || leader->control().zombie ||
        process->threads().size() < 2) {
      continue;
    }
    const auto stat = proc.task_stat(pid, pid);
    if (!stat || !stat->zombie() || !others_live_on(*process, *leader)) continue;
    bury(*leader);
    any = true;
  }
  return any;
}

void Engine::bury(Thread& leader) {
  ThreadControl& control = leader.control();
  control.zombie = true;
  note_thread_end(leader, 0);
  control.resumed = false;
  const bool asked_to_stop =
      std::exchange(control.client_stop, false) && control.client_stop_signal != 0;
  if (asked_to_stop) interrupt();
}

/// Call when a process made by clone() that shares the memory of the debugged one has executed
/// another program: it shares nothing any more, so it runs on by itself. `thread` has its id.
void Engine::let_clone_go(Thread& thread) {
  const pid_t group = thread.group();
  Process& process = thread.process();
  std::vector<Thread*> all;
  for (const auto& each : process.threads()) {
    if (each->group() == group) all.push_back(each.get());
  }
  for (Thread* each : all) {
    release_unannounced_child(*each);
    // The code that its source would put it back into is gone.
    if (each->trace()) each->trace()->end();
    note_thread_end(*each, 0);
    if (each != &thread) forget_thread(*each);
  }
  (void)request::detach(group);
  if (process.end && process.threads().size() == 1) {
    note_end(process, *process.end);
    forget_process(process.pid());
    return;
  }
  forget_thread(thread);
}

/// Lets a process go that shares the memory which the debugged process has just left by an exec.
void Engine::let_clone_go_soon(Thread& thread) {
  if (thread.stopped()) {
    detach_one(thread);
    return;
  }
  loose_.insert(thread.tid());
  (void)thread.interrupt();
}

}  // namespace backtrail::tracee
