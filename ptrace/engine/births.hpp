// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads and processes that begin: clone, fork and vfork.

#include "arch/base/result.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/orphans.hpp"
#include "ptrace/engine/recording.hpp"
#include "ptrace/engine/thread_runner.hpp"
#include "ptrace/engine/untold_children.hpp"
#include "ptrace/engine/waiter.hpp"

namespace backtrail::tracee {

/// Handles the events of threads that make others, and the first stops of those. See docs/stops.md,
/// "Clones", for what is a thread and what a process.
class Births {
 public:
  /// All arguments must outlive the object.
  Births(TaskTable& tasks, const EngineSettings& settings, ThreadRunner& runner, Waiter& waiter,
         Recording& recording, UntoldChildren& children, Orphans& orphans)
      : tasks_{tasks},
        settings_{settings},
        runner_{runner},
        waiter_{waiter},
        recording_{recording},
        children_{children},
        orphans_{orphans} {}

  /// PTRACE_EVENT_CLONE, PTRACE_EVENT_FORK or PTRACE_EVENT_VFORK of the thread.
  void handle_new_task(Thread& parent);
  /// First stop of a new thread.
  void handle_first_stop(Thread& thread);
  /// PTRACE_EVENT_VFORK_DONE of the thread.
  void handle_vfork_done(Thread& thread);

 private:
  void add_clone(Thread& parent, pid_t tid, pid_t group);
  void handle_fork(Thread& parent, pid_t child_pid, bool shares);
  Result<Process*> await_child(Thread& parent, pid_t child_pid);

  TaskTable& tasks_;
  const EngineSettings& settings_;
  ThreadRunner& runner_;
  Waiter& waiter_;
  Recording& recording_;
  UntoldChildren& children_;
  Orphans& orphans_;
};

}  // namespace backtrail::tracee
