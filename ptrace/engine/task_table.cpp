// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/task_table.hpp"

#include <algorithm>
#include <utility>

#include "ptrace/codecache/space/space_sharing.hpp"

namespace backtrail::tracee {

Process& TaskTable::add(std::unique_ptr<Process> process) {
  const pid_t pid = process->pid();
  return *(processes_[pid] = std::move(process));
}

Thread& TaskTable::add_thread(Process& process, pid_t tid) {
  Thread& thread = process.add_thread(tid);
  by_tid_[tid] = &thread;
  return thread;
}

void TaskTable::remove_thread(Thread& thread) {
  by_tid_.erase(thread.tid());
  thread.process().remove_thread(thread.tid());
}

void TaskTable::remove_process(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  for (const auto& thread : found->second->threads()) by_tid_.erase(thread->tid());
  cache::end_process(std::move(processes_.extract(found).mapped()));
}

void TaskTable::become_new_image(Process& process, Thread& survivor) {
  const pid_t pid = process.pid();
  std::erase_if(by_tid_, [=](const auto& entry) { return entry.second->id().pid == pid; });
  process.become_new_image(survivor);
  by_tid_[pid] = &survivor;
}

Process* TaskTable::find(pid_t pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : found->second.get();
}

Thread* TaskTable::find(ThreadId id) const {
  Thread* thread = find_thread(id.tid);
  return thread == nullptr || thread->id() != id ? nullptr : thread;
}

Thread* TaskTable::find_thread(pid_t tid) const {
  const auto found = by_tid_.find(tid);
  return found == by_tid_.end() ? nullptr : found->second;
}

std::vector<Process*> TaskTable::known() const {
  std::vector<Process*> known;
  for (const auto& [pid, process] : processes_) {
    if (!process->hidden) known.push_back(process.get());
  }
  return known;
}

bool TaskTable::any_running() const {
  return std::ranges::any_of(by_tid_, [](const auto& entry) {
    const ThreadControl& control = entry.second->control();
    return control.resumed && !control.pending && !control.zombie;
  });
}

}  // namespace backtrail::tracee
