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

/// Call before resuming a thread. If it stands at a breakpoint that it must be stepped over, queues
/// it unless it is queued already, and returns true.
bool Engine::wait_for_step_over(Thread& thread) {
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
  if (!std::exchange(control.queued, true)) step_overs_.push_back(thread.id());
  ChildSignal::again();
  return true;
}

/// Returns the queued threads of the process that may run.
std::vector<ThreadId> Engine::take_queued(pid_t pid) {
  std::vector<ThreadId> out;
  std::erase_if(step_overs_, [&](const ThreadId& id) {
    if (id.pid != pid) return false;
    Thread* thread = find(id);
    if (thread == nullptr) return true;
    ThreadControl& control = thread->control();
    control.queued = false;
    if (thread->stopped() && control.resumed && !control.pending) out.push_back(id);
    return true;
  });
  return out;
}

/// Makes one round. Returns false if no thread waits.
bool Engine::do_step_overs() {
  if (step_overs_.empty()) return false;
  const pid_t pid = step_overs_.front().pid;
  stop_threads([=](const Thread& t) { return t.id().pid == pid; });
  // In all-stop the client is told first; waiting threads are resumed with the others then.
  if (!non_stop_ && (!ended_.empty() || oldest_pending() != nullptr)) return true;
  for (const ThreadId& id : take_queued(pid)) {
    if (Thread* thread = find(id)) step_over_one(*thread);
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
  const auto is_done = [&] { return find(id) != &thread || thread.stopped(); };
  for (auto waited = kLook; !wait_until(is_done, kLook) && goes_on(thread, waited, kStarvedLimit);
       waited += kLook) {
  }
  Process* process = find(id.pid);
  if (process != nullptr && !process->lifted_for_vfork) {
    (void)process->breakpoints().reinsert(address);
  }
  if (find(id) == &thread) thread.control().stepping_over = false;
}

}  // namespace backtrail::tracee
