// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The CPU on which one thread stops again and again.

#include <chrono>
#include <cstddef>

#include <sched.h>
#include <sys/types.h>

namespace backtrail::tracee {

/// A thread that stops for signals all the time and who handles its stops run in turns. On two CPUs
/// each turn costs a wake-up of the other one; on one CPU it costs a switch. While the signals of
/// one thread come fast, the calling thread is narrowed to the CPU that the thread runs on. The
/// traced thread's own CPUs stay as they are.
///
/// All calls come from the thread that traces. What that thread creates inherits its CPUs:
/// go_back() comes before.
class StopCpu {
 public:
  StopCpu() = default;
  ~StopCpu() { go_back(); }
  StopCpu(const StopCpu&) = delete;
  StopCpu& operator=(const StopCpu&) = delete;

  /// The thread has stopped for a signal.
  void note_signal(pid_t tid);
  /// Gives the original CPUs back if no signal has come for some milliseconds.
  void look();
  /// Gives the original CPUs back, and begins to count anew. Costs nothing where there is nothing
  /// to give back.
  void go_back();
  [[nodiscard]] bool narrowed() const { return narrowed_; }

 private:
  using Clock = std::chrono::steady_clock;
  void begin(pid_t tid, Clock::time_point now);
  void follow(pid_t tid);

  pid_t tid_ = 0;
  std::size_t signals_ = 0;  ///< Signals of the thread since `since_`.
  Clock::time_point since_;
  Clock::time_point last_;
  bool narrowed_ = false;
  int cpu_ = -1;
  cpu_set_t original_{};
};

}  // namespace backtrail::tracee
