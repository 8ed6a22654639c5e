// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/step_overs.hpp"

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

/// Limit for an instruction that waits for something, such as memory that another thread provides.
constexpr std::chrono::milliseconds kStepOverLimit{1'000};

/// Time after which to look what the thread does.
constexpr std::chrono::milliseconds kLook{5};

/// Returns true if it pays to wait for the end of the step.
/// @param limit For an instruction that waits for a CPU.
bool goes_on(const Thread& thread, std::chrono::milliseconds waited,
             std::chrono::milliseconds limit) {
  const ProcFs proc;
  // In a system call that blocks, the thread is past the breakpoint.
  const auto call = proc.blocking_call(thread.tid());
  if (call && *call) return false;
  if (waited < kStepOverLimit) return true;
  const auto stat = proc.task_stat(thread.tid(), thread.tid());
  return stat && stat->state == 'R' && waited < limit;
}

}  // namespace

bool StepOvers::make_round() {
  if (queue_.empty()) return false;
  const pid_t pid = queue_.first_process();
  stopper_.stop_runners(pid);
  // In all-stop the client is told first; waiting threads are resumed with the others then.
  if (events_.come_first()) return true;
  for (const ThreadId& id : queue_.take(pid, tasks_)) {
    if (Thread* thread = tasks_.find(id)) step_over(*thread);
  }
  runner_.let_go_on(pid);
  return true;
}

/// Requires that no other thread of the process runs.
void StepOvers::step_over(Thread& thread) {
  const ThreadId id = thread.id();
  ThreadControl& control = thread.control();
  if (!thread.stopped() || !control.step_over_at) return;
  const TraceeAddr address = *control.step_over_at;
  (void)thread.process().breakpoints().lift(address);
  control.stepping_over = true;
  runner_.set_going(thread);
  const auto is_done = [&] { return tasks_.find(id) != &thread || thread.stopped(); };
  for (auto waited = kLook;
       !waiter_.wait_until(is_done, kLook) && goes_on(thread, waited, Waiter::kStarvedLimit);
       waited += kLook) {
  }
  Process* process = tasks_.find(id.pid);
  if (process != nullptr && !process->lifted_for_vfork) {
    (void)process->breakpoints().reinsert(address);
  }
  if (tasks_.find(id) == &thread) thread.control().stepping_over = false;
}

}  // namespace backtrail::tracee
