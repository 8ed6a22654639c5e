// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/step_over_queue.hpp"

#include <utility>

namespace backtrail::tracee {

void StepOverQueue::add(Thread& thread) {
  if (!std::exchange(thread.control().queued, true)) queue_.push_back(thread.id());
}

std::vector<ThreadId> StepOverQueue::take(pid_t pid, const TaskTable& tasks) {
  std::vector<ThreadId> out;
  std::erase_if(queue_, [&](const ThreadId& id) {
    if (id.pid != pid) return false;
    Thread* thread = tasks.find(id);
    if (thread == nullptr) return true;
    ThreadControl& control = thread->control();
    control.queued = false;
    if (thread->stopped() && control.resumed && !control.pending) out.push_back(id);
    return true;
  });
  return out;
}

}  // namespace backtrail::tracee
