// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Stops running threads without an event.

#include <functional>
#include <vector>

#include "ptrace/engine/stop_cpu.hpp"
#include "ptrace/engine/task_table.hpp"
#include "ptrace/engine/thread_runner.hpp"
#include "ptrace/engine/waiter.hpp"

namespace backtrail::tracee {

/// Stops threads and waits until they are stopped. Meanwhile other wait statuses are handled:
/// threads and processes may end or begin during each call.
class Stopper {
 public:
  /// All arguments must outlive the object.
  Stopper(const TaskTable& tasks, Waiter& waiter, ThreadRunner& runner, StopCpu& stop_cpu)
      : tasks_{tasks}, waiter_{waiter}, runner_{runner}, stop_cpu_{stop_cpu} {}

  /// Asks the thread to stop, without waiting. Its stop is not reported.
  static void ask(Thread& thread);
  /// Stops the threads for which `which` holds, except those that wait for their vfork children. A
  /// thread that does not stop in time is logged and runs on.
  /// @return False if one is not traced any more: another thread, which was not traced, has
  /// executed a program and taken over its id. The kernel tells nobody of that.
  bool stop(const std::function<bool(const Thread&)>& which);
  bool stop_process(pid_t pid);
  /// As stop_process(), but affinities that are narrowed stay so if no thread of the process runs.
  void stop_runners(pid_t pid);
  void stop_all();
  /// Calls `action` while no thread of the process runs; threads that ran are resumed afterwards.
  void while_stopped(pid_t pid, const std::function<void()>& action);
  /// Calls `action` for each thread that is left; those that run are stopped meanwhile.
  void each_stopped(const std::vector<ThreadId>& ids, const std::function<void(Thread&)>& action);

 private:
  const TaskTable& tasks_;
  Waiter& waiter_;
  ThreadRunner& runner_;
  StopCpu& stop_cpu_;
};

}  // namespace backtrail::tracee
