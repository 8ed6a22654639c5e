#pragma once
/// @file
/// Processes of a recorded run that others than the recorder trace: they go on unrecorded.

#include <sys/types.h>

#include <string>
#include <vector>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

class LeftProcesses {
 public:
  /// The process is about to be traced by `tracer`, which is 0 if nobody knows.
  void add(pid_t pid, pid_t tracer);
  [[nodiscard]] std::size_t count() const { return all_.size(); }
  /// Sends a signal to those that have not ended.
  void send(int signal) const;
  /// One line for the user; empty if there was none.
  [[nodiscard]] std::string text() const;

 private:
  struct Left {
    tracee::UniqueFd process;  ///< A pidfd; empty where the kernel has none.
    std::string name;          ///< "PID (NAME)".
    std::string tracer;        ///< As `name`.
  };
  std::vector<Left> all_;
};

}  // namespace backtrail::server
