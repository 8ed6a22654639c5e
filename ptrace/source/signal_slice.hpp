#pragma once
/// @file
/// Time of its own for a thread that gets signals faster than a tracer can pass them on.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>

#include <sys/types.h>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

class Thread;

/// Under a tracer a signal takes so long that a timer of 100 microseconds has expired again when
/// its handler returns: the thread would do nothing else any more. When the thread has had less
/// time for itself than signals took, it gets a slice: for as long as they took, the
/// signals that come so fast are blocked, and wait in the kernel. A signal is late then, never
/// lost.
class SignalSlice {
 public:
  using Clock = std::chrono::steady_clock;

  /// Whether such a signal may be late.
  [[nodiscard]] static bool may_hold(int signal);
  /// A signal of which may_hold() is about to be delivered to the thread. Those that its own
  /// process sends count as work of the thread's.
  void note_delivery(const siginfo_t& signal, pid_t process, Clock::time_point now = Clock::now());
  /// A handler returns to code that runs with this signal mask. Returns the mask to run it with,
  /// which is another if a slice begins. Nobody but the kernel may be shown it.
  [[nodiscard]] std::uint64_t note_return(std::uint64_t mask, Clock::time_point now = Clock::now());
  [[nodiscard]] bool active() const { return held_ != 0; }
  /// Whoever returns from a handler next has to be noted.
  [[nodiscard]] bool awaits_return() const { return delivered_ || active(); }
  /// The slice that has begun is this thread's, which is stopped: it is not over before the thread
  /// has run for a while, however busy the machine is.
  void measure(pid_t tid);
  /// When the slice is over, as far as that is known now; the thread has to stop then, for end().
  [[nodiscard]] Clock::time_point over_at() const;
  /// The thread, which is stopped, has had its slice.
  [[nodiscard]] bool over() const;
  /// The stopped thread has its own mask again.
  void end(Thread& thread);
  /// Signals that are blocked, and that the thread does not block.
  [[nodiscard]] std::uint64_t held() const { return held_; }
  /// These are not held any more, or by the thread itself.
  void forget(std::uint64_t signals = ~std::uint64_t{0}) { held_ &= ~signals; }

 private:
  [[nodiscard]] bool has_run() const;

  std::uint64_t fast_ = 0;  ///< Signals that have left the thread little time.
  std::uint64_t held_ = 0;  ///< Blocked by us alone.
  bool delivered_ = false;  ///< Since the last return.
  Clock::time_point delivered_at_;
  Clock::time_point returned_at_;
  Clock::time_point over_at_;
  Clock::duration owed_{};  ///< What signals have taken since the thread had time of its own.
  pid_t tid_ = 0;
  std::optional<std::chrono::nanoseconds> ran_before_;
};

}  // namespace backtrail::tracee
