// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// On which CPU a thread ran last.

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

/// Reads the CPU from /proc/TID/stat. A client that steps asks for the same thread at each stop, so
/// the file of the thread that was asked for last stays open.
class LastCpu {
 public:
  /// Returns the CPU's number; -1 if the thread is gone.
  int of(pid_t tid);

 private:
  int read();

  pid_t tid_ = 0;
  UniqueFd
      stat_;  ///< The file of `tid_`; stays that thread's even if the id is given to another one.
};

}  // namespace backtrail::tracee
