#pragma once
/// @file
/// What wakes the recorder while programs run: signals sent to it, and time that is up.

#include <chrono>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

class RunClock {
 public:
  /// `other_fd` is borrowed. Throws std::system_error.
  explicit RunClock(int other_fd);

  /// Readable when time is up or the other descriptor is.
  [[nodiscard]] int fd() const { return both_.get(); }
  void set(std::chrono::milliseconds time);
  /// Once for each set().
  [[nodiscard]] bool is_up();

 private:
  tracee::UniqueFd timer_;
  tracee::UniqueFd both_;
};

}  // namespace backtrail::server
