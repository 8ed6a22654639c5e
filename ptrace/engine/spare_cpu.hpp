// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Detects whether there is a CPU that no other thread wants.

#include <chrono>
#include <optional>

#include "ptrace/os/run_times.hpp"

namespace backtrail::tracee {

/// A thread that waits for its CPU a good part of the time shares it. Kernel threads run
/// everywhere, so that a short preemption does not count. Belongs to the thread that makes it.
class SpareCpu {
 public:
  using Clock = std::chrono::steady_clock;

  SpareCpu();
  /// Returns false for a while after this thread had to wait, always if the thread may use only one
  /// CPU or the kernel does not tell how long threads wait. May be called often; it measures
  /// rarely.
  [[nodiscard]] bool is_there();

  /// Measures, as is_there() does when it is time.
  /// @param times of the thread that made the object; nullopt if nobody knows
  void look(Clock::time_point now, std::optional<RunTimes> times);
  /// When is_there() measures again.
  [[nodiscard]] Clock::time_point next_look() const { return next_look_; }

 private:
  OwnRunTimes own_times_;
  RunTimes times_{};  ///< At the last look.
  Clock::time_point next_look_;
  Clock::duration pause_;  ///< How long is_there() is false if the thread had to wait.
  bool there_ = false;
  std::optional<int> left_;  ///< The CPU that the thread left for a trial of another one.
};

}  // namespace backtrail::tracee
