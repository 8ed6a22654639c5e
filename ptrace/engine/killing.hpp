// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ends processes: at once, or by a signal of their own with a last look.

#include <functional>

#include "arch/base/result.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/stopper.hpp"
#include "ptrace/engine/task_removal.hpp"
#include "ptrace/engine/untold_children.hpp"

namespace backtrail::tracee {

class Killing {
 public:
  /// All arguments must outlive the object.
  Killing(const TaskTable& tasks, const EngineSettings& settings, PendingEvents& events,
          CtrlC& ctrl_c, ThreadRunner& runner, Waiter& waiter, Stopper& stopper,
          TaskRemoval& removal, UntoldChildren& children)
      : tasks_{tasks},
        settings_{settings},
        events_{events},
        ctrl_c_{ctrl_c},
        runner_{runner},
        waiter_{waiter},
        stopper_{stopper},
        removal_{removal},
        children_{children} {}

  /// Kills the process with its children that the client does not know, and waits for its end,
  /// which is not reported. Errors: kNotFound, and those of send_kill().
  Result<void> kill(pid_t pid);
  /// See Engine.
  void end_after(ThreadId id, int signal, const std::function<void()>& action);

 private:
  void kill_untold_children(const Process& process);
  void report_exits_of_others(ThreadId id, bool on);

  const TaskTable& tasks_;
  const EngineSettings& settings_;
  PendingEvents& events_;
  CtrlC& ctrl_c_;
  ThreadRunner& runner_;
  Waiter& waiter_;
  Stopper& stopper_;
  TaskRemoval& removal_;
  UntoldChildren& children_;
};

}  // namespace backtrail::tracee
