// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps the tracing thread and a thread that stops all the time on one CPU.

#include <chrono>
#include <cstddef>
#include <memory>

#include <sys/types.h>

#include "ptrace/os/cpu_pin.hpp"
#include "ptrace/os/time_slice.hpp"

namespace backtrail::tracee {

/// A thread that stops all the time, for signals, steps or breakpoints whose conditions are false,
/// and the tracing thread, which handles the stops, run in turns. On one CPU each turn costs a
/// switch. On two it costs a wake-up, which is dear where the other CPU has gone idle meanwhile:
/// some 80 microseconds instead of 15 in a virtual machine. While the stops of one traced thread
/// come fast, both are narrowed to one CPU. The scheduler would not keep them there: it moves a
/// thread that is woken to an idle CPU.
///
/// Now and then the tracing thread may run anywhere again for two turns, so that the scheduler can
/// choose a better CPU for both.
///
/// While narrowed, the tracing thread has a longer time slice (TimeSlice).
///
/// All calls must come from the tracing thread. Threads and processes inherit its affinity and its
/// slice: call go_back() before creating one.
class StopCpu {
 public:
  using Clock = std::chrono::steady_clock;

  /// Longest time from one stop to the next, on average, for which narrowing pays. A thread that
  /// runs on after its stop may lose time on a CPU that it cannot leave; one that only steps waits
  /// nearly always, for its client.
  static constexpr std::chrono::microseconds kBetweenStops{500};
  static constexpr std::chrono::microseconds kBetweenSteps{5'000};

  StopCpu() = default;
  ~StopCpu() { go_back(); }
  StopCpu(const StopCpu&) = delete;
  StopCpu& operator=(const StopCpu&) = delete;

  /// Counts a stop of the thread of `pin`; narrows the affinities if they come
  /// fast.
  /// @param between kBetweenStops or kBetweenSteps.
  /// @param may_pin the thread's affinity may be narrowed: whoever asks for it, or inherits it, is
  /// seen before and CpuPin::release() called. Otherwise the tracing thread follows the thread.
  void note_stop(const std::shared_ptr<CpuPin>& pin, bool may_pin, Clock::time_point now,
                 std::chrono::microseconds between = kBetweenStops);
  /// Call when the thread counted is about to make a step.
  void expect_stop() { turn_ = Clock::now(); }
  /// Restores the affinities if no stop has come for 20 ms.
  void look();
  /// Restores the affinities and forgets the stops counted. Makes no system call if nothing is
  /// narrowed.
  void go_back();
  /// Returns true while the tracing thread is narrowed to one CPU.
  [[nodiscard]] bool narrowed() const { return narrowed_; }
  /// Returns true while either affinity is narrowed: look() must then be called every few
  /// milliseconds.
  [[nodiscard]] bool narrows() const { return narrowed_ || (thread_ && thread_->active()); }
  /// Returns true if narrowed() and the next stop should come within microseconds.
  [[nodiscard]] bool in_turns() const;

 private:
  /// Begins to count the stops of a thread.
  void begin(const std::shared_ptr<CpuPin>& pin, Clock::time_point now);
  /// Narrows the affinities to one CPU for the thread that is counted.
  void follow(bool may_pin);
  /// Narrows the tracing thread to the CPU that the thread last ran on.
  bool follow_natively();
  bool pin_both();
  void release_thread();

  CpuPin own_{0};
  TimeSlice slice_;                 ///< The tracing thread's.
  std::shared_ptr<CpuPin> thread_;  ///< The thread whose stops are counted; may be null.
  std::size_t stops_ = 0;           ///< Stops of the thread since `since_`.
  std::size_t since_choice_ = 0;    ///< Stops since the CPU was chosen.
  Clock::time_point since_;
  Clock::time_point last_;  ///< Time of the newest stop.
  Clock::time_point turn_;  ///< Time of the newest stop or expect_stop().
  bool narrowed_ = false;
  bool choosing_ = false;  ///< The scheduler chooses another CPU.
};

}  // namespace backtrail::tracee
