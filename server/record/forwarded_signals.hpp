// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Passes signals sent to the recorder on to the program that it runs.

#include <csignal>
#include <functional>

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT while it lives. Signals that were ignored when the
/// recorder started stay ignored. Signals from the terminal are not passed on: the program is in
/// the same process group and gets them itself.
class ForwardedSignals {
 public:
  /// Throws std::system_error.
  ForwardedSignals();
  ~ForwardedSignals();
  ForwardedSignals(const ForwardedSignals&) = delete;
  ForwardedSignals& operator=(const ForwardedSignals&) = delete;

  /// Descriptor that becomes readable when a signal has arrived.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Sends the signals that have arrived to the process.
  /// @param before_first Called before the first SIGTERM is passed on.
  void forward(pid_t pid, const std::function<void()>& before_first);

 private:
  sigset_t old_mask_{};
  tracee::UniqueFd fd_;
  bool terminated_ = false;
};

/// Ends this process by the signal, without a core file.
[[noreturn]] void die_of(int signal);

}  // namespace backtrail::server
