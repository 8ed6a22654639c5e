// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/end_queue.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::tracee {

void EndQueue::add(std::uint64_t order, const StopEvent& event) {
  ends_.push_back({.order = order, .end = {.event = event}});
}

void EndQueue::add(std::uint64_t order, UntoldEnd end) {
  ends_.push_back({.order = order, .end = std::move(end), .listed = true});
}

StopEvent EndQueue::take() {
  StopEvent event = std::move(ends_.front().end.event);
  ends_.pop_front();
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
  std::erase_if(ends_,
                [](const Entry& entry) { return entry.end.event.kind == StopKind::kThreadExited; });
}

}  // namespace backtrail::tracee
