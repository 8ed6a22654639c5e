// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads and processes that end, also those that nobody asked to end.

#include "ptrace/engine/detaching.hpp"
#include "ptrace/engine/orphans.hpp"
#include "ptrace/engine/pending_events.hpp"
#include "ptrace/engine/stop_cpu.hpp"
#include "ptrace/engine/task_removal.hpp"
#include "ptrace/engine/thread_runner.hpp"
#include "ptrace/engine/untold_children.hpp"

namespace backtrail::tracee {

/// Handles last wait statuses.
class Ends {
 public:
  /// All arguments must outlive the object.
  Ends(const TaskTable& tasks, PendingEvents& events, ThreadRunner& runner, StopCpu& stop_cpu,
       TaskRemoval& removal, UntoldChildren& children, Orphans& orphans, Detaching& detaching)
      : tasks_{tasks},
        events_{events},
        runner_{runner},
        stop_cpu_{stop_cpu},
        removal_{removal},
        children_{children},
        orphans_{orphans},
        detaching_{detaching} {}

  /// The thread has ended: destroys it, and its process if that has ended, too.
  void handle(Thread& thread, const WaitStatus& status);

 private:
  void handle_process(Thread& last, const StopEvent& event);
  void forget_birth_of(pid_t child);

  const TaskTable& tasks_;
  PendingEvents& events_;
  ThreadRunner& runner_;
  StopCpu& stop_cpu_;
  TaskRemoval& removal_;
  UntoldChildren& children_;
  Orphans& orphans_;
  Detaching& detaching_;
};

}  // namespace backtrail::tracee
