// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// New tasks that their makers have not reported, or never will.

#include <optional>
#include <vector>

#include "ptrace/engine/left_breakpoints.hpp"
#include "ptrace/engine/task_table.hpp"
#include "ptrace/engine/unclaimed_tasks.hpp"
#include "ptrace/engine/untold_children.hpp"

namespace backtrail::tracee {

/// Keeps new tasks until their makers report them. A process whose maker was killed before that is
/// let go, without the breakpoints in its memory; if the client killed the maker, it is killed.
class Orphans {
 public:
  /// Both arguments must outlive the object.
  Orphans(const TaskTable& tasks, UntoldChildren& children) : tasks_{tasks}, children_{children} {}

  /// Call for the first stop of a task that is not in the table.
  void note(pid_t tid, const WaitStatus& first) { unclaimed_.note(tid, first); }
  /// Call when the maker has reported the task, or when it has ended. Returns its first stop;
  /// nullopt if that has not come.
  std::optional<WaitStatus> claim(pid_t tid) { return unclaimed_.claim(tid); }
  /// Call when a signal has ended the process: it may leave a child whose memory has its
  /// breakpoints.
  void note_killed(Process& process) { left_breakpoints_.note(process.breakpoints()); }
  /// Call when the thread has ended. Its child shares its fate if the client asked for that.
  void settle(Thread& ended);
  /// Lets all go whose makers are gone.
  void let_all_go();

 private:
  std::vector<UnclaimedTasks::Orphan> take(const Thread* ended);
  void let_go(const UnclaimedTasks::Orphan& orphan, Thread* maker);

  const TaskTable& tasks_;
  UntoldChildren& children_;
  UnclaimedTasks unclaimed_;
  LeftBreakpoints left_breakpoints_;
};

}  // namespace backtrail::tracee
