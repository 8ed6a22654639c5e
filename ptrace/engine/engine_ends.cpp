// SPDX-License-Identifier: Apache-2.0
// Threads and processes that end, also those that nobody asked to end.

#include <algorithm>
#include <cerrno>
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

/// Looking reads a file for each leader.
constexpr std::chrono::milliseconds kLookAtLeadersEvery{20};

/// Returns false if the whole process is ending, as far as that can be known. The process is the
/// kernel's (Thread::group()).
bool others_live_on(const Process& process, const Thread& leader) {
  for (const auto& thread : process.threads()) {
    if (thread.get() == &leader || thread->group() != leader.group()) continue;
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
  // The end of a leader that had ended before the server attached to its threads is told to nobody.
  const bool leader_was_gone = last && !leaving_.contains(id.pid);
  if ((id.tid == id.pid && !process.end) || leader_was_gone) {
    const bool told = !process.hidden || let_go_.erase(id.pid) != 0;
    // The end of a child that the client does not know is not reported.
    if (told) events_.note_end(process, process.end.value_or(event));
    if (event.kind == StopKind::kProcessSignalled) left_breakpoints_.note(process.breakpoints());
    for (const auto& each : process.threads()) settle_unannounced_child(*each);
    settle_orphans_of(thread);
    forget_process(id.pid);
    if (!told) forget_birth_of(id.pid);
    return;
  }
  settle_unannounced_child(thread);
  settle_orphans_of(thread);
  events_.note_thread_end(thread, event.exit_code);
  forget_thread(thread);
  if (last) forget_process(id.pid);
}

/// Call when a child has ended. A client that was told of its fork now would look for it in vain.
void Engine::forget_birth_of(pid_t child) {
  for (const auto& [tid, thread] : tasks_.threads()) {
    ThreadControl& control = thread->control();
    const auto& pending = control.pending;
    if (!pending || pending->child.pid != child) continue;
    if (pending->kind != StopKind::kFork && pending->kind != StopKind::kVfork) continue;
    events_.drop(*thread);
    control.vfork_told = false;
    if (thread->stopped() && control.resumed) go(*thread);
    return;
  }
}

void Engine::kill_unannounced_children(const Process& process) {
  std::vector<pid_t> children;
  for (const auto& thread : process.threads()) {
    const Process* child = unannounced_child(*thread);
    if (child != nullptr) children.push_back(child->pid());
  }
  for (const pid_t child : children) (void)kill(child);
}

/// Sends SIGKILL to each thread by its own id, which no other task can get before the server has
/// waited for this one. Processes made by clone() are reached, too. Errors: kill(2)'s, if no thread
/// got it.
Result<void> Engine::send_kill(const Process& process) {
  int refused = 0;
  bool any = false;
  for (const auto& thread : process.threads()) {
    const int error = thread->send(SIGKILL);
    any = any || error == 0;
    if (error != 0 && error != ESRCH) refused = error;
  }
  if (any || refused == 0) return {};
  return fail(errno_error(refused, "kill", static_cast<std::uint64_t>(process.pid())));
}

/// Returns the child whose fork is the thread's pending event; null if there is none.
Process* Engine::unannounced_child(const Thread& thread) const {
  const auto& pending = thread.control().pending;
  if (!pending || (pending->kind != StopKind::kFork && pending->kind != StopKind::kVfork)) {
    return nullptr;
  }
  Process* child = tasks_.find(pending->child.pid);
  return child != nullptr && child->hidden ? child : nullptr;
}

/// Call when the thread's pending event will not be handed out. If it is a fork, the client will
/// never ask to resume the child, so it runs on by itself, or shares the parent's fate.
void Engine::settle_unannounced_child(Thread& thread) {
  Process* child = unannounced_child(thread);
  if (child == nullptr) return;
  if (thread.process().client_kills) (void)send_kill(*child);
  release_child(*child);
}

/// Looks for leaders that have ended, unless that was done a moment ago; then pump() is called
/// again soon. Returns true if there was one.
bool Engine::look_at_leaders() {
  if (Clock::now() - leaders_seen_ < kLookAtLeadersEvery) {
    wake_ups_.wake_soon();
    return false;
  }
  return bury_zombie_leaders();
}

/// Notices leaders that have ended before other threads of their processes. The kernel keeps their
/// exit statuses until the last thread has ended. Returns true if there was one.
bool Engine::bury_zombie_leaders() {
  const ProcFs proc;
  leaders_seen_ = Clock::now();
  std::vector<Thread*> ended;
  for (const auto& [pid, process] : tasks_.processes()) {
    if (process->threads().size() < 2) continue;
    for (const auto& each : process->threads()) {
      if (each->tid() != each->group() || each->stopped() || each->control().zombie) continue;
      if (!others_live_on(*process, *each)) continue;
      const auto stat = proc.task_stat(each->tid(), each->tid());
      if (stat && stat->zombie()) ended.push_back(each.get());
    }
  }
  for (Thread* leader : ended) bury(*leader);
  return !ended.empty();
}

void Engine::bury(Thread& leader) {
  ThreadControl& control = leader.control();
  control.zombie = true;
  events_.note_thread_end(leader, 0);
  control.resumed = false;
  if (take_ctrl_c(leader)) interrupt();
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
    settle_unannounced_child(*each);
    // The code that its source would put it back into is gone.
    if (each->trace()) each->trace()->end();
    events_.note_thread_end(*each, 0);
    if (each != &thread) forget_thread(*each);
  }
  (void)request::detach(group);
  if (process.end && process.threads().size() == 1) {
    events_.note_end(process, *process.end);
    forget_process(process.pid());
    return;
  }
  forget_thread(thread);
}

/// Returns a thread of a process made by clone() that can be stopped and is not.
Thread* Engine::running_clone(Process& process) {
  for (const auto& thread : process.threads()) {
    const ThreadControl& control = thread->control();
    if (thread->group() == process.pid() || control.zombie) continue;
    if (control.vfork_parent && !thread->stopped()) continue;
    if (!thread->stopped() || control.starting) return thread.get();
  }
  return nullptr;
}

/// Call when the process has executed another program, and nothing has been forgotten of the old
/// one. Processes that share the old memory keep it, and run on by themselves, without breakpoints.
void Engine::let_clones_go(Process& process) {
  const auto is_clone = [&](const auto& each) { return each->group() != process.pid(); };
  if (std::ranges::none_of(process.threads(), is_clone)) return;
  const auto deadline = Clock::now() + kStarvedLimit;
  // Only they are waited for: the state of the thread that is in its exec must not change.
  while (Thread* clone = running_clone(process)) {
    const pid_t tid = clone->tid();
    if (!clone->control().stop_wanted) ask_to_stop(*clone);
    if (wait_one(tid)) continue;
    if (Clock::now() >= deadline) break;
    (void)child_signal_.wait(-1, std::chrono::milliseconds{1});
  }
  ChildSignal::again();
  (void)process.breakpoints().lift_all();
  std::vector<Thread*> stopped;
  for (const auto& each : process.threads()) {
    if (is_clone(each) && each->stopped()) stopped.push_back(each.get());
  }
  for (Thread* clone : stopped) {
    settle_unannounced_child(*clone);
    end_trace(*clone);
    detach_one(*clone);
    events_.note_thread_end(*clone, 0);
    forget_thread(*clone);
  }
}

}  // namespace backtrail::tracee
