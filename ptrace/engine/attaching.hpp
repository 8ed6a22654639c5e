// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Launches programs and attaches to processes.

#include "arch/base/result.hpp"
#include "ptrace/engine/ctrl_c.hpp"
#include "ptrace/engine/detaching.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/recording.hpp"
#include "ptrace/engine/seize_watch.hpp"
#include "ptrace/engine/stop_cpu.hpp"
#include "ptrace/engine/stopper.hpp"
#include "ptrace/engine/task_removal.hpp"
#include "ptrace/engine/waiter.hpp"
#include "ptrace/tracee/launch_spec.hpp"

namespace backtrail::tracee {

/// Begins to trace a process. Its threads are stopped afterwards.
class Attaching {
 public:
  /// All arguments must outlive the object.
  Attaching(TaskTable& tasks, const EngineSettings& settings, CtrlC& ctrl_c, StopCpu& stop_cpu,
            Waiter& waiter, Stopper& stopper, Recording& recording, TaskRemoval& removal,
            Detaching& detaching)
      : tasks_{tasks},
        settings_{settings},
        ctrl_c_{ctrl_c},
        stop_cpu_{stop_cpu},
        waiter_{waiter},
        stopper_{stopper},
        recording_{recording},
        removal_{removal},
        detaching_{detaching} {}

  /// Returns the process's id. Errors: those of launch_process().
  Result<pid_t> launch(const LaunchSpec& spec);
  /// Errors: kBusy if the server traces the process already, kNotFound, and those of
  /// ptrace(PTRACE_SEIZE).
  Result<pid_t> attach(pid_t pid);

 private:
  /// An attach in progress.
  struct Seizing {
    SeizeWatch watch;
    bool new_image = false;  ///< The process executes another program than the one opened.
  };

  Result<pid_t> seize_first(pid_t pid, Seizing& seizing);
  static Result<pid_t> seize(pid_t pid, pid_t tid, Seizing& seizing);
  void note_seized(Process& process, pid_t tid);
  Result<bool> seize_tasks(Process& process, Seizing& seizing);
  Result<bool> seize_task(Process& process, pid_t tid, Seizing& seizing);
  Result<bool> seize_leader(Process& process, Seizing& seizing);

  TaskTable& tasks_;
  const EngineSettings& settings_;
  CtrlC& ctrl_c_;
  StopCpu& stop_cpu_;
  Waiter& waiter_;
  Stopper& stopper_;
  Recording& recording_;
  TaskRemoval& removal_;
  Detaching& detaching_;
};

}  // namespace backtrail::tracee
