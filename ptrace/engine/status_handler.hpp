// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Interface for handlers of wait statuses.

#include <sys/types.h>

#include "ptrace/os/wait_status.hpp"

namespace backtrail::tracee {

class StatusHandler {
 public:
  StatusHandler() = default;
  StatusHandler(const StatusHandler&) = delete;
  StatusHandler& operator=(const StatusHandler&) = delete;
  virtual ~StatusHandler() = default;

  /// The kernel has reported a stop or an end of the task. The handler may wait for other threads,
  /// so that it is called again before it returns.
  virtual void handle(pid_t tid, const WaitStatus& status) = 0;
};

}  // namespace backtrail::tracee
