// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A thread's wait for others to leave translated code, which must end some time.

namespace backtrail::tracee::cache {

class LimitedWait {
 public:
  /// A thread that has not left translated code after this many waits does not stop at all, as in
  /// an uninterruptible call.
  static constexpr unsigned kMostWaits = 20'000;

  /// Returns true if the thread must wait (again): others are inside, and it has not waited for too
  /// long.
  [[nodiscard]] bool has_to_go_on(bool anybody_inside) {
    return anybody_inside && ++waits_ < kMostWaits;
  }
  /// Call when the thread waits no more.
  void end() { waits_ = 0; }

 private:
  unsigned waits_ = 0;
};

}  // namespace backtrail::tracee::cache
