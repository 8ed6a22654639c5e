// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Turns SIGTERM, SIGINT and SIGHUP into a readable descriptor, and SIGPIPE into an error of
/// write().

#include <csignal>
#include <optional>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// While an instance lives, these signals are reported instead of ending the calling thread.
/// Signals that were ignored at the start (nohup) stay ignored. SIGPIPE gets an empty handler:
/// debugged programs would inherit an ignored signal.
class StopSignals {
 public:
  /// Throws std::system_error.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Readable once a signal has come.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Returns a signal that has come; nullopt if none has.
  [[nodiscard]] std::optional<int> take();

 private:
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  tracee::UniqueFd fd_;
};

}  // namespace backtrail::server
