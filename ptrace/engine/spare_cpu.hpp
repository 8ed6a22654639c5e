// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Detects whether there is a CPU that no other thread wants.

#include <chrono>

namespace backtrail::tracee {

/// A thread that is preempted shares its CPU. is_there() may be called often; it measures rarely.
class SpareCpu {
 public:
  SpareCpu();
  /// Returns false for a while after this thread was preempted, and always if the thread may use
  /// only one CPU.
  [[nodiscard]] bool is_there();

 private:
  using Clock = std::chrono::steady_clock;
  void look(Clock::time_point now);

  Clock::time_point next_look_;
  long preemptions_ = 0;
  bool there_ = false;
};

}  // namespace backtrail::tracee
