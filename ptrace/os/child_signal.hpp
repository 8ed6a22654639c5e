#pragma once
/// @file
/// SIGCHLD as a file descriptor.

#include <chrono>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

/// Blocks SIGCHLD in the calling thread and makes it readable. One per process is enough; launched
/// programs do not inherit the mask (the launch code restores the one the server was started with).
class ChildSignal {
 public:
  ChildSignal();

  /// Becomes readable when a traced thread has something to say.
  [[nodiscard]] int fd() const { return fd_.get(); }
  void drain();
  /// Makes it readable again, for whoever drained it has not looked at all that happened.
  static void again();

  enum class Woken : unsigned char { kChild, kInput, kTimeout };
  /// Waits until a child has news or `input_fd` (-1: none) is readable or closed. Input comes
  /// first, and what the child has to say stays readable then.
  Woken wait(int input_fd, std::chrono::milliseconds timeout);

 private:
  UniqueFd fd_;
};

}  // namespace backtrail::tracee
