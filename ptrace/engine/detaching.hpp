// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Detaches from processes, which run on by themselves.

#include <functional>
#include <set>

#include "arch/base/result.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/pending_events.hpp"
#include "ptrace/engine/stopper.hpp"
#include "ptrace/engine/task_removal.hpp"
#include "ptrace/engine/untold_children.hpp"

namespace backtrail::tracee {

/// Undoes all that the server did to a thread or process before it lets it go.
class Detaching {
 public:
  /// All arguments must outlive the object.
  Detaching(const TaskTable& tasks, const EngineSettings& settings, PendingEvents& events,
            Stopper& stopper, TaskRemoval& removal, UntoldChildren& children)
      : tasks_{tasks},
        settings_{settings},
        events_{events},
        stopper_{stopper},
        removal_{removal},
        children_{children} {}

  /// See Engine.
  Result<void> detach(pid_t pid);
  /// See Engine.
  Result<void> let_go(ThreadId last, const std::function<void()>& before_last);
  /// Call when a process has ended of which the client does not know, or which is not traced any
  /// more. Returns true, once, if let_go() was called for it, so that its end is reported.
  bool take_let_go(pid_t pid) { return let_go_.erase(pid) != 0; }

  /// Detaches from a stopped thread, with the signal that it was about to get. Its trace must have
  /// ended.
  void detach_thread(Thread& thread);
  /// Returns true for a process that was detached from, except for threads that wait for their
  /// vfork children.
  [[nodiscard]] bool is_leaving(pid_t pid) const { return removal_.is_leaving(pid); }
  /// Detaches from a stopped thread of a process that is leaving, and forgets it.
  void let_leave(Thread& thread);
  /// The thread, which the table does not have any more, is detached from at its next stop.
  void detach_later(pid_t tid) { loose_.insert(tid); }
  /// Call for a wait status of a thread that is not in the table. Returns true if detach_later()
  /// was called for it.
  bool handle_loose(pid_t tid, const WaitStatus& status);
  /// Call when a task that is not in the table has ended. Its end is reported if let_go() was
  /// called for it.
  void handle_untraced_end(pid_t pid, const WaitStatus& status);

 private:
  Result<void> detach_all(pid_t pid, pid_t last, const std::function<void()>& before_last);
  [[nodiscard]] int detach_signal(Thread& thread) const;

  const TaskTable& tasks_;
  const EngineSettings& settings_;
  PendingEvents& events_;
  Stopper& stopper_;
  TaskRemoval& removal_;
  UntoldChildren& children_;
  std::set<pid_t> let_go_;  ///< Processes that let_go() was called for.
  std::set<pid_t> loose_;   ///< Threads that are detached from at their next stop.
};

}  // namespace backtrail::tracee
