// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the tracing thread sleeps on: child processes, and the kernel buffers of threads whose
/// every record is kept.

#include <chrono>
#include <map>
#include <vector>

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

class WakeUps {
 public:
  /// `child_fd` is borrowed. Throws std::system_error.
  explicit WakeUps(int child_fd);

  /// Descriptor that becomes readable when a child changes state or a buffer should be read.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  /// Watches the thread's buffer until forget(), or until the kernel reports that no more records
  /// will come. Watched buffers must also be read every now and then, which a timer ensures.
  void watch(pid_t tid, int fd);
  void forget(pid_t tid);
  /// Makes fd() readable once in some 20 ms.
  void wake_soon();
  /// Returns the threads whose buffers should be read now. Costs nothing while none is watched and
  /// the time of wake_soon() has not come.
  std::vector<pid_t> take();

 private:
  void set_timer();
  void end(pid_t tid);

  UniqueFd epoll_;
  UniqueFd timer_;
  std::map<pid_t, int> watched_;
  bool soon_ = false;  ///< wake_soon() was called, and that time has not come.
  std::chrono::steady_clock::time_point soon_at_;  ///< Time of the wake-up, if `soon_`.
};

}  // namespace backtrail::tracee
