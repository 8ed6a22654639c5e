// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Wakes the recorder while programs run: for signals sent to it, and when a time is up.

#include <chrono>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

class RunClock {
 public:
  /// `other_fd` is borrowed. Throws std::system_error.
  explicit RunClock(int other_fd);

  /// Descriptor that becomes readable when the time is up or the other descriptor is readable.
  [[nodiscard]] int fd() const { return both_.get(); }
  void set(std::chrono::milliseconds time);
  /// Returns true once for each set().
  [[nodiscard]] bool is_up();

 private:
  tracee::UniqueFd timer_;
  tracee::UniqueFd both_;
};

}  // namespace backtrail::server
