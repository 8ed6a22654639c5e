// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Moves the tracing thread to the CPU of a thread that stops for signals all the time.

#include <chrono>
#include <cstddef>

#include <sched.h>
#include <sys/types.h>

namespace backtrail::tracee {

/// A thread that stops for signals all the time and the tracing thread, which handles the stops,
/// run in turns. On two CPUs each turn costs a wake-up, on one CPU only a switch. While the signals
/// of one traced thread come fast, the tracing thread's affinity is narrowed to the CPU that the
/// traced thread runs on. The traced thread's affinity stays as it is.
///
/// All calls must come from the tracing thread. Threads and processes inherit its affinity: call
/// go_back() before creating one.
class StopCpu {
 public:
  StopCpu() = default;
  ~StopCpu() { go_back(); }
  StopCpu(const StopCpu&) = delete;
  StopCpu& operator=(const StopCpu&) = delete;

  /// Counts a signal for which the thread has stopped; narrows the affinity if they come fast.
  void note_signal(pid_t tid);
  /// Restores the affinity if no signal has come for some milliseconds.
  void look();
  /// Restores the affinity and forgets the signals counted. Makes no system call if the affinity is
  /// not narrowed.
  void go_back();
  /// Returns true while the affinity is narrowed to one CPU.
  [[nodiscard]] bool narrowed() const { return narrowed_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// Begins to count the signals of a thread.
  void begin(pid_t tid, Clock::time_point now);
  /// Narrows the affinity to the CPU that the thread last ran on.
  void follow(pid_t tid);

  pid_t tid_ = 0;            ///< Thread whose signals are counted; 0 if none.
  std::size_t signals_ = 0;  ///< Signals of the thread since `since_`.
  Clock::time_point since_;
  Clock::time_point last_;  ///< Time of the newest signal.
  bool narrowed_ = false;
  int cpu_ = -1;          ///< The one CPU while narrowed_.
  cpu_set_t original_{};  ///< The affinity to restore.
};

}  // namespace backtrail::tracee
