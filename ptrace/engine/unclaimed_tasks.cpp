// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/unclaimed_tasks.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::tracee {

void UnclaimedTasks::note(pid_t tid, const WaitStatus& first) {
  const auto status = proc_.status(tid);
  tasks_.insert_or_assign(tid, Task{.first = first, .parent = status ? status->ppid : 0});
}

std::optional<WaitStatus> UnclaimedTasks::claim(pid_t tid) {
  const auto found = tasks_.find(tid);
  if (found == tasks_.end()) return std::nullopt;
  const WaitStatus first = found->second.first;
  tasks_.erase(found);
  return first;
}

/// A child has its maker for parent, or its maker's parent (CLONE_PARENT).
bool UnclaimedTasks::may_be_claimed(const ProcStatus& task, const std::set<pid_t>& groups) const {
  if (groups.contains(task.ppid)) return true;
  return std::ranges::any_of(groups, [&](pid_t group) {
    const auto maker = proc_.status(group);
    return maker && maker->ppid == task.ppid;
  });
}

std::vector<UnclaimedTasks::Orphan> UnclaimedTasks::take_orphans(const std::set<pid_t>& groups) {
  std::vector<Orphan> orphans;
  std::erase_if(tasks_, [&](const auto& each) {
    const auto& [tid, task] = each;
    const auto status = proc_.status(tid);
    if (!status) return status.error().is(TraceErrc::kTraceeGone);  // it has ended
    if (status->tgid != tid || may_be_claimed(*status, groups)) return false;
    orphans.push_back({.pid = tid, .parent = task.parent});
    return true;
  });
  return orphans;
}

}  // namespace backtrail::tracee
