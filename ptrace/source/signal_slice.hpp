// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Gives time to a thread that gets signals faster than a tracer can pass them on.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>

#include <sys/types.h>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

class Thread;

/// Under a tracer, passing on a signal takes so long that a timer of 100 microseconds has expired
/// again when its handler returns; the thread would do nothing but handle signals. When the thread
/// has had less time for itself than signals took, it gets a slice: for as long as the signals
/// took, the ones that come so fast are blocked and wait in the kernel. Signals may be late, but
/// are never lost.
class SignalSlice {
 public:
  using Clock = std::chrono::steady_clock;

  /// Returns true if the signal may be delayed. SIGCHLD may not: a program whose wait for a child
  /// has returned relies on its handler having run.
  [[nodiscard]] static bool may_hold(int signal);
  /// Call before delivering a signal for which may_hold() is true.
  /// @param keeps_order  Returns true for processes whose signals are not delayed, because the
  ///                     thread may rely on their order: a recorded process signals, then it ends
  ///                     or writes to a pipe, and the thread finds out.
  void note_delivery(const siginfo_t& signal, const std::function<bool(pid_t)>& keeps_order,
                     Clock::time_point now = Clock::now());
  /// Call when a handler returns to code with signal mask `mask`. Returns the mask to run it with,
  /// which differs if a slice begins. Only the kernel may see the returned mask.
  [[nodiscard]] std::uint64_t note_return(std::uint64_t mask, Clock::time_point now = Clock::now());
  [[nodiscard]] bool active() const { return held_ != 0; }
  /// Returns true if note_return() must be called at the next return from a handler.
  [[nodiscard]] bool awaits_return() const { return delivered_ || active(); }
  /// The slice that has begun is this thread's, which is stopped: it is not over before the thread
  /// has run for a while, however busy the machine is.
  void measure(pid_t tid);
  /// Returns the earliest end of the slice, as known now. The thread must then be stopped for
  /// end().
  [[nodiscard]] Clock::time_point over_at() const;
  /// Returns true if the stopped thread has had its slice.
  [[nodiscard]] bool over() const;
  /// Ends the slice: restores the stopped thread's own mask.
  void end(Thread& thread);
  /// Returns the signals that are blocked but not by the thread itself.
  [[nodiscard]] std::uint64_t held() const { return held_; }
  /// Call when these signals are not blocked any more, or the thread itself blocks them now.
  void forget(std::uint64_t signals = ~std::uint64_t{0}) { held_ &= ~signals; }

 private:
  [[nodiscard]] bool has_run() const;

  std::uint64_t fast_ = 0;  ///< Signals that have left the thread little time.
  std::uint64_t held_ = 0;  ///< Signals blocked for the slice only.
  bool delivered_ = false;  ///< A signal was delivered since the last return.
  Clock::time_point delivered_at_;
  Clock::time_point returned_at_;
  Clock::time_point over_at_;
  Clock::duration owed_{};  ///< Time that signals have taken since the thread last had time for
                            ///< itself.
  pid_t tid_ = 0;
  std::optional<std::chrono::nanoseconds> ran_before_;
};

}  // namespace backtrail::tracee
