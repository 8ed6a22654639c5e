// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Lets stopped threads run on.

#include <span>
#include <utility>

#include "arch/base/result.hpp"
#include "ptrace/engine/cpu_sharing.hpp"
#include "ptrace/engine/ctrl_c.hpp"
#include "ptrace/engine/pending_events.hpp"
#include "ptrace/engine/source_demands.hpp"
#include "ptrace/engine/step_over_queue.hpp"
#include "ptrace/engine/task_table.hpp"
#include "ptrace/tracee/resume_action.hpp"

namespace backtrail::tracee {

/// Decides whether a stopped thread runs on, waits, or tells the client something. Never waits for
/// a thread itself.
class ThreadRunner {
 public:
  /// All arguments must outlive the object.
  ThreadRunner(const TaskTable& tasks, PendingEvents& events, CtrlC& ctrl_c,
               StepOverQueue& step_overs, SourceDemands& demands, CpuSharing& cpu_sharing)
      : tasks_{tasks},
        events_{events},
        ctrl_c_{ctrl_c},
        step_overs_{step_overs},
        demands_{demands},
        cpu_sharing_{cpu_sharing} {}

  /// Call for a stop that is not reported. The thread runs on unless somebody wants it stopped.
  void go(Thread& thread);
  /// Resumes a stopped thread as the client ordered. If it stands at a breakpoint whose condition
  /// is false, it waits to be stepped over it instead.
  void set_going(Thread& thread);
  /// Makes `event` the stopped thread's pending event.
  void post(Thread& thread, StopEvent event);
  /// Handles a Ctrl-C: a thread stops and reports SIGINT, now or later (CtrlC).
  void interrupt();
  /// Carries out the client's orders. Threads that have ended are left out.
  void resume(std::span<const std::pair<ThreadId, ResumeAction>> orders);
  /// Resumes the process's threads that are stopped for no reason of the client.
  /// @param except The threads of this group (Thread::group()) stay as they are; 0: none does.
  void let_go_on(pid_t pid, pid_t except = 0);
  /// let_go_on() for all processes.
  void let_all_go_on();

 private:
  void leave_call(Thread& thread);
  void take_order(Thread& thread, const ResumeAction& action);
  void stop_for_client(Thread& thread);
  void drop_stale_event(Thread& thread, const ResumeAction& action);
  void start(Thread& thread);

  const TaskTable& tasks_;
  PendingEvents& events_;
  CtrlC& ctrl_c_;
  StepOverQueue& step_overs_;
  SourceDemands& demands_;
  CpuSharing& cpu_sharing_;
};

}  // namespace backtrail::tracee
