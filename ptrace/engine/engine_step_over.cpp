// SPDX-License-Identifier: Apache-2.0
// Steps over breakpoints whose conditions are false.
//
// The instruction runs with the breakpoint lifted, while no other thread of the process runs.
// Threads that reach such a breakpoint wait, and all of them are stepped over in one round, so that
// other events are handled between two rounds.

#include <algorithm>
#include <utility>

#include "arch/base/log.hpp"
#include "ptrace/engine/engine.hpp"
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
  const auto stat = proc.stat(thread.tid());
  return stat && stat->state == 'R' && waited < limit;
}

}  // namespace

/// Makes one round. Returns false if no thread waits.
bool Engine::do_step_overs() {
  if (step_over_queue_.empty()) return false;
  const pid_t pid = step_over_queue_.first_process();
  stop_threads([=](const Thread& t) { return t.id().pid == pid; });
  // In all-stop the client is told first; waiting threads are resumed with the others then.
  if (events_.come_first()) return true;
  for (const ThreadId& id : step_over_queue_.take(pid, tasks_)) {
    if (Thread* thread = tasks_.find(id)) step_over_one(*thread);
  }
  let_go_on(pid);
  return true;
}

/// Requires that no other thread of the process runs.
void Engine::step_over_one(Thread& thread) {
  const ThreadId id = thread.id();
  ThreadControl& control = thread.control();
  if (!thread.stopped() || !control.step_over_at) return;
  const TraceeAddr address = *control.step_over_at;
  (void)thread.process().breakpoints().lift(address);
  control.stepping_over = true;
  set_going(thread);
  const auto is_done = [&] { return tasks_.find(id) != &thread || thread.stopped(); };
  for (auto waited = kLook; !wait_until(is_done, kLook) && goes_on(thread, waited, kStarvedLimit);
       waited += kLook) {
  }
  Process* process = tasks_.find(id.pid);
  if (process != nullptr && !process->lifted_for_vfork) {
    (void)process->breakpoints().reinsert(address);
  }
  if (tasks_.find(id) == &thread) thread.control().stepping_over = false;
}

}  // namespace backtrail::tracee
