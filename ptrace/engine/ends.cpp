// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/ends.hpp"

#include <algorithm>

#include "ptrace/engine/thread_traces.hpp"

namespace backtrail::tracee {
namespace {

/// Returns true if processes that share the memory live on after the leader, the last thread of its
/// own process, has ended.
bool lives_on(const Process& process) {
  return std::ranges::any_of(process.threads(),
                             [&](const auto& thread) { return thread->group() != process.pid(); });
}

}  // namespace

void Ends::handle(Thread& thread, const WaitStatus& status) {
  stop_cpu_.go_back();
  const ThreadId id = thread.id();
  // The client cannot ask for this history any more, and decoding it would need code that is gone.
  if (thread.trace()) thread.trace()->end();
  const StopEvent event = StopEvent::end_of(id, status);
  Process& process = thread.process();
  const bool last = process.threads().size() == 1;
  if (id.tid == id.pid && !last && lives_on(process)) process.end = event;
  // The end of a leader that had ended before the server attached to its threads is told to nobody.
  const bool leader_was_gone = last && !removal_.is_leaving(id.pid);
  if ((id.tid == id.pid && !process.end) || leader_was_gone) {
    handle_process(thread, event);
    return;
  }
  children_.settle(thread);
  orphans_.settle(thread);
  events_.note_thread_end(thread, event.exit_code);
  removal_.remove_thread(thread);
  if (last) removal_.remove_process(id.pid);
}

/// Handles the end of a process. `last` is the thread whose wait status said so.
void Ends::handle_process(Thread& last, const StopEvent& event) {
  Process& process = last.process();
  const pid_t pid = process.pid();
  const bool told = !process.hidden || detaching_.take_let_go(pid);
  // The end of a child that the client does not know is not reported.
  if (told) events_.note_end(process, process.end.value_or(event));
  if (event.kind == StopKind::kProcessSignalled) orphans_.note_killed(process);
  for (const auto& each : process.threads()) children_.settle(*each);
  orphans_.settle(last);
  removal_.remove_process(pid);
  if (!told) forget_birth_of(pid);
}

/// Call when a child has ended. A client that was told of its fork now would look for it in vain.
void Ends::forget_birth_of(pid_t child) {
  for (const auto& [tid, thread] : tasks_.threads()) {
    ThreadControl& control = thread->control();
    const auto& pending = control.pending;
    if (!pending || pending->child.pid != child) continue;
    if (pending->kind != StopKind::kFork && pending->kind != StopKind::kVfork) continue;
    events_.drop(*thread);
    control.vfork_told = false;
    if (thread->stopped() && control.resumed) runner_.go(*thread);
    return;
  }
}

}  // namespace backtrail::tracee
