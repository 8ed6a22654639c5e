// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Forked children that the client has not been told of.

#include "arch/base/result.hpp"
#include "ptrace/engine/task_removal.hpp"
#include "ptrace/engine/task_table.hpp"

namespace backtrail::tracee {

/// Traces new children, and lets those run on by themselves that the client will not hear of. A
/// child that is traced already is hidden (Process::hidden) until its parent's event is taken.
class UntoldChildren {
 public:
  /// Both arguments must outlive the object.
  UntoldChildren(TaskTable& tasks, TaskRemoval& removal) : tasks_{tasks}, removal_{removal} {}

  /// Begins to trace a child that is in its first stop. Errors: those of Process::open().
  Result<Process*> adopt(Thread& parent, pid_t child_pid);
  /// Lets a child run on that could not be adopted.
  static void let_go(pid_t child_pid, const Error& why);
  /// Lets an adopted child run on untraced, without breakpoints, and forgets it.
  void release(Process& child);
  /// Returns the child whose fork is the thread's pending event; null if there is none.
  [[nodiscard]] Process* of(const Thread& parent) const;
  /// Call when the thread's pending event will not be handed out. If it is a fork, the client will
  /// never ask to resume the child, so it runs on by itself, or shares the parent's fate.
  void settle(Thread& parent);

 private:
  TaskTable& tasks_;
  TaskRemoval& removal_;
};

}  // namespace backtrail::tracee
