#pragma once
/// @file
/// SIGTERM, SIGINT and SIGHUP as a readable descriptor; SIGPIPE as an error of write().

#include <csignal>
#include <optional>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// While it lives, the calling thread's end is announced instead of happening. Signals that were
/// ignored when the program started (nohup) stay ignored. SIGPIPE gets a handler that does nothing
/// rather than being ignored, because programs under debug would inherit that.
class StopSignals {
 public:
  /// Throws std::system_error.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Readable once one has come.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The signal that has come, if one has.
  [[nodiscard]] std::optional<int> take();

 private:
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  tracee::UniqueFd fd_;
};

}  // namespace backtrail::server
