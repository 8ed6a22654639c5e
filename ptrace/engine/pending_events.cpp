// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/pending_events.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::tracee {
namespace {

/// Returns true if the kernel is ending a thread: its last wait status is on its way. A thread that
/// calls exit_group() may have ended before the others.
bool any_ends(const TaskTable& tasks) {
  return std::ranges::any_of(tasks.threads(), [](const auto& entry) {
    const Thread& thread = *entry.second;
    if (thread.control().zombie || thread.control().vfork_parent) return false;
    return thread.stopped() ? thread.is_gone() : thread.state() == Thread::State::kRunning;
  });
}

}  // namespace

void PendingEvents::put(Thread& thread, StopEvent event) {
  event.thread = thread.id();
  ThreadControl& control = thread.control();
  control.pending = std::move(event);
  posted_.erase(control.pending_order);
  control.pending_order = next_order_++;
  posted_.emplace(control.pending_order, thread.tid());
}

void PendingEvents::drop(Thread& thread) {
  posted_.erase(thread.control().pending_order);
  thread.control().pending.reset();
}

void PendingEvents::note_end(const Process& process, const StopEvent& end) {
  if (process.hidden) return ended_.add(next_order_++, end);
  UntoldEnd untold{.event = end, .attached = process.attached(), .threads = {}};
  for (const auto& thread : process.threads()) untold.threads.push_back(thread->id());
  ended_.add(next_order_++, std::move(untold));
}

void PendingEvents::note_thread_end(Thread& thread, int exit_code) {
  if (!thread.control().resumed) return;
  resumed_one_ended_ = true;
  const bool is_asked_for = thread.control().options.exit;
  if ((!settings_.reported.threads && !is_asked_for) || thread.process().hidden) return;
  const StopEvent end{
      .thread = thread.id(), .kind = StopKind::kThreadExited, .exit_code = exit_code};
  ended_.add(next_order_++, end, is_asked_for);
}

/// Returns the thread with the oldest event that may be handed out; null if there is none.
Thread* PendingEvents::oldest() {
  for (auto each = posted_.begin(); each != posted_.end();) {
    Thread* thread = tasks_.find_thread(each->second);
    if (thread == nullptr || !thread->control().pending ||
        thread->control().pending_order != each->first) {
      each = posted_.erase(each);  // it has ended
      continue;
    }
    if (thread->control().resumed && !thread->process().hidden) return thread;
    ++each;
  }
  return nullptr;
}

bool PendingEvents::any() {
  return !ended_.empty() || oldest() != nullptr;
}

std::optional<StopEvent> PendingEvents::take() {
  Thread* thread = oldest();
  if (!ended_.empty() && (thread == nullptr || ended_.oldest() < thread->control().pending_order)) {
    return ended_.take();
  }
  if (thread == nullptr) return std::nullopt;
  return take_of(*thread);
}

/// Notes that the client knows the thread or process that the event reports.
///
/// The event of a fork also tells that the child is stopped: an order to stop it reports nothing,
/// because a client that has not come to that event yet would take the child for an unrelated
/// process.
void PendingEvents::note_told(const StopEvent& birth) {
  if (birth.kind == StopKind::kThreadCloned) {
    Thread* thread = tasks_.find(birth.child);
    if (thread == nullptr) return;
    thread->control().untold = false;
    thread->control().stop_known = true;
    return;
  }
  Process* child = tasks_.find(birth.child.pid);
  if (child == nullptr) return;
  child->hidden = false;
  for (const auto& thread : child->threads()) thread->control().stop_known = true;
}

StopEvent PendingEvents::take_of(Thread& thread) {
  ThreadControl& control = thread.control();
  StopEvent event = *control.pending;
  drop(thread);
  control.last_stop = event;
  control.resumed = false;
  control.stop_known = true;
  if (event.child.pid != 0) note_told(event);
  return event;
}

std::optional<StopEvent> PendingEvents::take_no_resumed() {
  if (!resumed_one_ended_) return std::nullopt;
  const bool any_resumed = std::ranges::any_of(tasks_.threads(), [](const auto& entry) {
    return entry.second->control().resumed && !entry.second->control().zombie;
  });
  if (any_resumed || tasks_.threads().empty() || any_ends(tasks_)) return std::nullopt;
  resumed_one_ended_ = false;
  return StopEvent{.kind = StopKind::kNoResumed};
}

}  // namespace backtrail::tracee
