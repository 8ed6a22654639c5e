// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs traced threads and the tracing thread on one CPU while they take turns.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <sys/types.h>

#include "ptrace/os/cpu_pin.hpp"

namespace backtrail::tracee {

/// Where processes are born, execute programs and end, one after another, a thread runs for some
/// microseconds between two stops, and the tracing thread between them. On two CPUs each turn waits
/// for a CPU: one that has gone idle, or one where another program has its time slice. On one CPU a
/// turn costs a switch.
///
/// While stops of all threads come fast, and one thread at a time makes them, the tracing thread is
/// narrowed to its CPU and threads that it resumes begin there (ResumeHere). Beside StopCpu, which
/// narrows one thread for as long as it gets signals, this is for all threads and for no longer
/// than a resumption.
///
/// All calls must come from the tracing thread.
class TurnCpu {
 public:
  using Clock = std::chrono::steady_clock;

  /// Facts about a stop.
  struct Stop {
    pid_t tid = 0;
    std::uint64_t translated = 0;  ///< Superblocks that were made so far for the thread.
    /// There is a CPU on which translations can be made without a stop. Ignored while narrowed().
    bool has_spare_cpu = false;
  };

  TurnCpu() = default;
  ~TurnCpu() { go_back(); }
  TurnCpu(const TurnCpu&) = delete;
  TurnCpu& operator=(const TurnCpu&) = delete;

  /// Counts a stop of a traced thread, and narrows the tracing thread if they come fast.
  /// @param others_run Returns true if another traced thread is running. Called rarely, because
  ///                   that takes longer than a turn.
  void note_stop(const Stop& stop, Clock::time_point now, const std::function<bool()>& others_run);
  /// Returns true while the tracing thread is narrowed.
  [[nodiscard]] bool narrowed() const { return narrowed_; }
  /// Returns true if narrowed() and the next stop should come within microseconds.
  [[nodiscard]] bool in_turns() const;
  /// Restores the affinity if no stop has come for 20 ms.
  void look();
  /// Restores the affinity. Makes no system call if it is not narrowed.
  void go_back();

 private:
  /// Returns true if the stops counted are such that turns on one CPU take less time.
  [[nodiscard]] bool pays(bool has_spare_cpu, Clock::time_point now) const;
  void begin(Clock::time_point now);

  CpuPin own_{0};
  bool narrowed_ = false;
  bool had_spare_cpu_ = false;  ///< Before the affinity was narrowed.
  std::size_t turns_ = 0;       ///< Stops since then.
  std::size_t stops_ = 0;       ///< Since `since_`.
  std::size_t changes_ = 0;     ///< Stops among them of another thread than the one before.
  Clock::time_point since_;
  std::uint64_t made_ = 0;  ///< Superblocks made since `since_`.
  Stop last_stop_;
  Clock::time_point last_;  ///< Time of the newest stop.
};

}  // namespace backtrail::tracee
