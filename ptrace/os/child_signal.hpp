// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// SIGCHLD as a file descriptor.

#include <chrono>
#include <optional>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

/// Blocks SIGCHLD in the calling thread and delivers it through a descriptor. One per process is
/// enough. Launched programs do not inherit the mask: restore_inherited_signals() restores the one
/// that the server was started with.
class ChildSignal {
 public:
  ChildSignal();

  /// Descriptor that becomes readable when a child changes state.
  [[nodiscard]] int fd() const { return fd_.get(); }
  void drain();
  /// Call when wait4(2) has found no child with news.
  void note_no_news();
  /// Returns false if no child has changed state since note_no_news(). True in doubt, and now and
  /// then in any case: a group whose leader has ended first reports its end by the signal that its
  /// maker chose.
  [[nodiscard]] bool may_have_news();
  /// Returns true if note_no_news() was called after the newest signal that drain() has taken.
  [[nodiscard]] bool saw_all_news() const { return no_news_.has_value(); }
  /// Makes the descriptor readable again. Call after drain() if some events have not been handled.
  static void again();

  enum class Woken : unsigned char { kChild, kInput, kTimeout };
  /// Waits until a child changes state, or `input_fd` (-1: none) is readable or closed. If both
  /// have happened, returns kInput and leaves the child's change to a later call.
  Woken wait(int input_fd, std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  UniqueFd fd_;
  std::optional<Clock::time_point> no_news_;  ///< Since when there has been none; unset: unknown.
  bool just_drained_ = false;                 ///< drain() came after the last may_have_news().
};

}  // namespace backtrail::tracee
