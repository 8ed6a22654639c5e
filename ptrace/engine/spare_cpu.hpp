#pragma once
/// @file
/// Whether there is a CPU that nobody else wants.

#include <chrono>

namespace backtrail::tracee {

/// Who is preempted shares the CPU with others. Asked often, it looks seldom.
class SpareCpu {
 public:
  /// False for a while after this thread was preempted, and always where it has one CPU alone.
  [[nodiscard]] bool is_there();

 private:
  using Clock = std::chrono::steady_clock;
  void look(Clock::time_point now);

  Clock::time_point next_look_;
  long preemptions_ = 0;
  bool there_ = false;
};

}  // namespace backtrail::tracee
