// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/orphans.hpp"

#include <algorithm>
#include <csignal>
#include <set>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/process_memory.hpp"

namespace backtrail::tracee {

void Orphans::settle(Thread& ended) {
  const auto orphans = take(&ended);
  if (orphans.empty()) return;
  for (const auto& orphan : orphans) {
    if (ended.process().client_kills) {
      (void)::kill(orphan.pid, SIGKILL);
    } else {
      let_go(orphan, &ended);
    }
  }
}

void Orphans::let_all_go() {
  for (const auto& orphan : take(nullptr)) {
    const auto maker = std::ranges::find_if(tasks_.threads(), [&](const auto& entry) {
      return entry.second->group() == orphan.parent;
    });
    let_go(orphan, maker == tasks_.threads().end() ? nullptr : maker->second);
  }
}

/// Returns the new processes that no thread can report any more, because it was killed first.
/// @param ended A thread that has just ended; null if there is none.
std::vector<UnclaimedTasks::Orphan> Orphans::take(const Thread* ended) {
  if (unclaimed_.empty()) return {};
  std::set<pid_t> groups;
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (thread != ended && !thread->stopped() && !thread->control().zombie) {
      groups.insert(thread->group());
    }
  }
  if (ended != nullptr && ended->tid() == ended->group()) groups.erase(ended->group());
  return unclaimed_.take_orphans(groups);
}

/// @param maker A thread of the process that probably made it; null if that is not known any more.
void Orphans::let_go(const UnclaimedTasks::Orphan& orphan, Thread* maker) {
  log::ptrace().debug("pid={}: its parent was killed before it could report it", orphan.pid);
  if (auto memory = ProcessMemory::open(orphan.pid)) left_breakpoints_.lift_from(*memory);
  if (maker == nullptr) {
    (void)request::detach(orphan.pid);
    return;
  }
  if (const auto child = children_.adopt(*maker, orphan.pid)) {
    if (const auto& space = maker->process().cache_space) space->kept().keep_for_child();
    children_.release(**child);
  } else {
    UntoldChildren::let_go(orphan.pid, child.error());
  }
}

}  // namespace backtrail::tracee
