// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/zombie_leaders.hpp"

#include <algorithm>
#include <vector>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

/// Looking reads a file for each leader.
constexpr std::chrono::milliseconds kLookEvery{20};

/// Returns false if the whole process is ending, as far as that can be known. The process is the
/// kernel's (Thread::group()).
bool others_live_on(const Process& process, const Thread& leader) {
  for (const auto& thread : process.threads()) {
    if (thread.get() == &leader || thread->group() != leader.group()) continue;
    if (!thread->stopped() || !thread->is_gone()) return true;
  }
  return false;
}

}  // namespace

bool ZombieLeaders::look() {
  const auto may_have_one = [](const auto& entry) {
    return entry.second->any_not_stopped() && entry.second->threads().size() > 1;
  };
  if (std::ranges::none_of(tasks_.processes(), may_have_one)) return false;
  if (Clock::now() - seen_ < kLookEvery) {
    wake_ups_.wake_soon();
    return false;
  }
  return look_now();
}

bool ZombieLeaders::look_now() {
  const ProcFs proc;
  seen_ = Clock::now();
  std::vector<Thread*> ended;
  for (const auto& [pid, process] : tasks_.processes()) {
    if (process->threads().size() < 2) continue;
    for (const auto& each : process->threads()) {
      if (each->tid() != each->group() || each->stopped() || each->control().zombie) continue;
      if (!others_live_on(*process, *each)) continue;
      const auto stat = proc.task_stat(each->tid(), each->tid());
      if (stat && stat->zombie()) ended.push_back(each.get());
    }
  }
  for (Thread* leader : ended) bury(*leader);
  return !ended.empty();
}

void ZombieLeaders::bury(Thread& leader) {
  ThreadControl& control = leader.control();
  control.zombie = true;
  events_.note_thread_end(leader, 0);
  control.resumed = false;
  if (CtrlC::take(leader)) runner_.interrupt();
}

}  // namespace backtrail::tracee
