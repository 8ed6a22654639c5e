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

constexpr std::chrono::milliseconds kStepOverLimit{1'000};
/// Time after which to check whether the thread sleeps in a system call.
constexpr std::chrono::milliseconds kMaySleep{5};

/// Returns true if the instruction is a system call that blocks. The thread is then past the
/// breakpoint.
bool sleeps(const Thread& thread) {
  const auto stat = ProcFs{}.stat(thread.tid());
  return stat && (stat->state == 'S' || stat->state == 'D');
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
  for (auto waited = kMaySleep; !wait_until(is_done, kMaySleep) && waited < kStepOverLimit;
       waited += kMaySleep) {
    if (sleeps(thread)) break;
  }
  Process* process = find(id.pid);
  if (process != nullptr && !process->lifted_for_vfork) {
    (void)process->breakpoints().reinsert(address);
  }
  if (find(id) == &thread) thread.control().stepping_over = false;
}

}  // namespace backtrail::tracee
