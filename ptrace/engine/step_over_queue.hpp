// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads at breakpoints whose conditions are false.

#include <deque>
#include <vector>

#include "ptrace/engine/task_table.hpp"

namespace backtrail::tracee {

/// Keeps the threads that wait for their turn to be stepped over a breakpoint, in order of arrival.
class StepOverQueue {
 public:
  /// Adds a stopped thread, unless it waits already.
  void add(Thread& thread);
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  /// The process of the thread that has waited longest. Requires !empty().
  [[nodiscard]] pid_t first_process() const { return queue_.front().pid; }
  /// Takes the process's threads out of the queue. Returns those that may run.
  std::vector<ThreadId> take(pid_t pid, const TaskTable& tasks);

 private:
  std::deque<ThreadId> queue_;
};

}  // namespace backtrail::tracee
