// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Processes of a recorded run that continue unrecorded: another process traces them, or the
/// recorder may not read their memory.

#include <sys/types.h>

#include <string>
#include <vector>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

class LeftProcesses {
 public:
  /// Adds a process that `tracer` is about to trace; 0: unknown.
  void add_traced(pid_t pid, pid_t tracer);
  /// Adds a process that executes a file without read permission.
  void add_unreadable(pid_t pid);
  [[nodiscard]] std::size_t count() const { return all_.size(); }
  /// Sends a signal to the processes that have not ended.
  void send(int signal) const;
  /// Returns one line for the user; empty if there were none.
  [[nodiscard]] std::string text() const;

 private:
  struct Left {
    tracee::UniqueFd process;  ///< A pidfd; empty if the kernel has none.
    std::string what;          ///< "process PID (NAME) is not recorded ...".
  };
  void add(pid_t pid, std::string what);

  std::vector<Left> all_;
};

}  // namespace backtrail::server
