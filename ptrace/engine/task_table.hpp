// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All traced processes and threads.

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {

/// Owns the processes, and finds their threads by id. Asks nothing of the kernel.
class TaskTable {
 public:
  using Processes = std::map<pid_t, std::unique_ptr<Process>>;
  using Threads = std::unordered_map<pid_t, Thread*>;

  /// Adds a process that has no threads yet.
  Process& add(std::unique_ptr<Process> process);
  Thread& add_thread(Process& process, pid_t tid);
  /// Destroys the thread.
  void remove_thread(Thread& thread);
  /// Destroys the process with its threads. No effect if there is none.
  void remove_process(pid_t pid);
  /// Call when the process has executed another program: destroys all threads but `survivor`, which
  /// gets the process's id.
  void become_new_image(Process& process, Thread& survivor);

  /// Null if there is none; so are the results of the following ones.
  [[nodiscard]] Process* find(pid_t pid) const;
  [[nodiscard]] Thread* find(ThreadId id) const;
  /// Finds a thread by the kernel's id alone.
  [[nodiscard]] Thread* find_thread(pid_t tid) const;
  [[nodiscard]] const Processes& processes() const { return processes_; }
  [[nodiscard]] const Threads& threads() const { return by_tid_; }
  /// Returns the processes that the client knows.
  [[nodiscard]] std::vector<Process*> known() const;
  /// Returns true if a thread that the client resumed runs on.
  [[nodiscard]] bool any_running() const;

 private:
  Processes processes_;
  Threads by_tid_;
};

}  // namespace backtrail::tracee
