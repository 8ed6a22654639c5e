// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Processes that execute another program.

#include "ptrace/engine/breakpoint_conditions.hpp"
#include "ptrace/engine/detaching.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/task_removal.hpp"
#include "ptrace/engine/thread_runner.hpp"
#include "ptrace/engine/untold_children.hpp"
#include "ptrace/engine/waiter.hpp"

namespace backtrail::tracee {

/// Handles PTRACE_EVENT_EXEC: of a process, whose other threads are gone, and of a clone, a process
/// with memory of another one (Thread::group()), which shares nothing any more.
class Execs {
 public:
  /// All arguments must outlive the object.
  Execs(TaskTable& tasks, const EngineSettings& settings, PendingEvents& events,
        BreakpointConditions& conditions, ThreadRunner& runner, Waiter& waiter,
        TaskRemoval& removal, UntoldChildren& children, Detaching& detaching)
      : tasks_{tasks},
        settings_{settings},
        events_{events},
        conditions_{conditions},
        runner_{runner},
        waiter_{waiter},
        removal_{removal},
        children_{children},
        detaching_{detaching} {}

  /// Call for the PTRACE_EVENT_EXEC of an unknown thread. Returns it as the leader of its process,
  /// to which the server has attached when the former leader had ended; null if it is none.
  Thread* adopt_leader(pid_t pid);
  /// Call first, before the thread's source sees the stop. Lets clones go, which keep the old
  /// memory, and turns to the new one.
  void begin(Thread& thread);
  /// Forgets the old program and reports the new one. `thread` has the process's id.
  void handle(Thread& thread);
  /// The clone `thread` has executed a program. It runs on by itself.
  void handle_clone(Thread& thread);

 private:
  Thread& survivor_of(Thread& thread);
  void let_clones_go(Process& process);

  TaskTable& tasks_;
  const EngineSettings& settings_;
  PendingEvents& events_;
  BreakpointConditions& conditions_;
  ThreadRunner& runner_;
  Waiter& waiter_;
  TaskRemoval& removal_;
  UntoldChildren& children_;
  Detaching& detaching_;
};

}  // namespace backtrail::tracee
