// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/step_over_queue.hpp"

#include <utility>

namespace backtrail::tracee {

bool StepOverQueue::wait(Thread& thread) {
  ThreadControl& control = thread.control();
  if (!control.step_over_at || control.stepping_over) return false;
  // In a group stop the thread stays at the breakpoint until the process continues. A step leaves
  // the stop.
  const bool steps = control.action.kind != ResumeKind::kContinue;
  if (thread.status().is_group_stop() && !steps) return false;
  const auto pc = thread.pc();
  if (!pc || *pc != *control.step_over_at || !thread.process().breakpoints().contains(*pc)) {
    control.step_over_at.reset();
    return false;
  }
  if (!std::exchange(control.queued, true)) queue_.push_back(thread.id());
  return true;
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
