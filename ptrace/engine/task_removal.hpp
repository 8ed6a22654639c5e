// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Removes threads and processes that have ended or are not traced any more.

#include <optional>
#include <set>

#include "ptrace/engine/breakpoint_conditions.hpp"
#include "ptrace/engine/task_table.hpp"
#include "ptrace/engine/thread_runner.hpp"

namespace backtrail::tracee {

/// Removes tasks from the table together with all that the engine keeps for them. A Ctrl-C that one
/// of them was to answer goes to another thread. When no process is left, the terminal goes back to
/// the process group that had it.
class TaskRemoval {
 public:
  /// All arguments must outlive the object.
  TaskRemoval(TaskTable& tasks, BreakpointConditions& conditions, CtrlC& ctrl_c,
              ThreadRunner& runner)
      : tasks_{tasks}, conditions_{conditions}, ctrl_c_{ctrl_c}, runner_{runner} {}

  /// Destroys the thread.
  void remove_thread(Thread& thread);
  /// Destroys the process with its threads. No effect if there is none.
  void remove_process(pid_t pid);

  /// Notes that the process was detached from, except for threads that wait for their vfork
  /// children.
  void note_leaving(pid_t pid) { leaving_.insert(pid); }
  [[nodiscard]] bool is_leaving(pid_t pid) const { return leaving_.contains(pid); }
  /// Returns those that are left of the processes for which note_leaving() was called.
  [[nodiscard]] const std::set<pid_t>& leaving() const { return leaving_; }

  /// Notes that a launched program got the terminal's foreground from the process group.
  void note_terminal_owner(pid_t group);
  /// Gives the terminal back, if a program has got it.
  void take_terminal_back();

 private:
  TaskTable& tasks_;
  BreakpointConditions& conditions_;
  CtrlC& ctrl_c_;
  ThreadRunner& runner_;
  std::set<pid_t> leaving_;
  std::optional<pid_t> terminal_owner_;
};

}  // namespace backtrail::tracee
