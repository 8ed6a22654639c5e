// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/end_queue.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::tracee {

void EndQueue::add(std::uint64_t order, const StopEvent& event, bool asked_for) {
  ends_.push_back({.order = order, .end = {.event = event}, .asked_for = asked_for});
}

void EndQueue::add(std::uint64_t order, UntoldEnd end) {
  ends_.push_back({.order = order, .end = std::move(end), .listed = true});
}

StopEvent EndQueue::take() {
  const auto oldest = first();
  StopEvent event = oldest->end.event;
  ends_.erase(oldest);
  return event;
}

std::vector<const UntoldEnd*> EndQueue::untold() const {
  std::vector<const UntoldEnd*> listed;
  for (const Entry& entry : ends_) {
    if (entry.listed) listed.push_back(&entry.end);
  }
  return listed;
}

bool EndQueue::forget(pid_t pid) {
  bool listed = false;
  std::erase_if(ends_, [&](const Entry& entry) {
    const bool is_its = entry.end.event.thread.pid == pid;
    listed = listed || (is_its && entry.listed);
    return is_its;
  });
  return listed;
}

void EndQueue::forget_threads() {
  std::erase_if(ends_, [](const Entry& entry) {
    return entry.end.event.kind == StopKind::kThreadExited && !entry.asked_for;
  });
}

void EndQueue::hold_threads() {
  for (Entry& entry : ends_) {
    entry.held = entry.held || entry.end.event.kind == StopKind::kThreadExited;
  }
}

void EndQueue::release(ThreadId id) {
  for (Entry& entry : ends_) {
    if (entry.end.event.thread == id) entry.held = false;
  }
}

std::vector<ThreadId> EndQueue::held() const {
  std::vector<ThreadId> ids;
  for (const Entry& entry : ends_) {
    if (entry.held) ids.push_back(entry.end.event.thread);
  }
  return ids;
}

void EndQueue::forget_held() {
  std::erase_if(ends_, [](const Entry& entry) { return entry.held; });
}

std::deque<EndQueue::Entry>::const_iterator EndQueue::first() const {
  return std::ranges::find(ends_, false, &Entry::held);
}

}  // namespace backtrail::tracee
