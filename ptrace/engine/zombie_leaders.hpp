// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Leaders that ended before the other threads of their processes.

#include <chrono>

#include "ptrace/engine/task_table.hpp"
#include "ptrace/engine/thread_runner.hpp"
#include "ptrace/engine/wake_ups.hpp"

namespace backtrail::tracee {

/// The kernel keeps such a leader's exit status until the last thread has ended, and tells nobody.
/// Its zombie state must be looked for, which reads a file for each leader.
class ZombieLeaders {
 public:
  /// All arguments must outlive the object.
  ZombieLeaders(const TaskTable& tasks, PendingEvents& events, ThreadRunner& runner,
                WakeUps& wake_ups)
      : tasks_{tasks}, events_{events}, runner_{runner}, wake_ups_{wake_ups} {}

  /// Looks for leaders that have ended, unless that was done a moment ago; then the tracing thread
  /// is woken again soon. Returns true if there was one.
  bool look();
  /// Looks now.
  bool look_now();

 private:
  void bury(Thread& leader);

  using Clock = std::chrono::steady_clock;
  const TaskTable& tasks_;
  PendingEvents& events_;
  ThreadRunner& runner_;
  WakeUps& wake_ups_;
  Clock::time_point seen_{};  ///< Time of the last look.
};

}  // namespace backtrail::tracee
