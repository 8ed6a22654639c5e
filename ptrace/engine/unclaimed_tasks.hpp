// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// New tasks (threads and processes) whose first stop came before the event of the thread that made
/// them.

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "ptrace/os/procfs.hpp"
#include "ptrace/os/wait_status.hpp"

namespace backtrail::tracee {

/// Keeps the first stops until the makers' events claim them. A maker that is killed in between
/// never has that event; its child is an orphan, stopped for ever unless somebody lets it go.
class UnclaimedTasks {
 public:
  explicit UnclaimedTasks(ProcFs proc = ProcFs{}) : proc_{std::move(proc)} {}

  /// Call for a stop of a task that is not known yet.
  void note(pid_t tid, const WaitStatus& first);
  /// Call when the maker's event has come, or when the task has ended. Returns its first stop;
  /// nullopt if that has not come.
  std::optional<WaitStatus> claim(pid_t tid);
  [[nodiscard]] bool empty() const { return tasks_.empty(); }

  struct Orphan {
    pid_t pid = 0;
    /// The parent when the child first stopped: usually the process that made it.
    pid_t parent = 0;
  };
  /// Returns the processes that nobody can claim any more, and forgets them. Threads end with their
  /// process.
  /// @param groups The processes that have a thread whose event may still come.
  std::vector<Orphan> take_orphans(const std::set<pid_t>& groups);

 private:
  struct Task {
    WaitStatus first;
    pid_t parent = 0;
  };
  [[nodiscard]] bool may_be_claimed(const ProcStatus& task, const std::set<pid_t>& groups) const;

  ProcFs proc_;
  std::unordered_map<pid_t, Task> tasks_;
};

}  // namespace backtrail::tracee
