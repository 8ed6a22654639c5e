#pragma once
/// @file
/// Signals sent to the recorder that are meant for the program it runs.

#include <csignal>
#include <functional>

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT, while it lives. Those that were ignored when the recorder
/// started stay ignored. What the terminal sends is not passed on: the program is in the same
/// process group and has got it as well.
class ForwardedSignals {
 public:
  /// Throws std::system_error.
  ForwardedSignals();
  ~ForwardedSignals();
  ForwardedSignals(const ForwardedSignals&) = delete;
  ForwardedSignals& operator=(const ForwardedSignals&) = delete;

  /// Readable when one has come.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Sends what has come to the process.
  /// @param before_first  Called before the first SIGTERM is passed on.
  void forward(pid_t pid, const std::function<void()>& before_first);

 private:
  sigset_t old_mask_{};
  tracee::UniqueFd fd_;
  bool terminated_ = false;
};

/// Ends this process by the signal, without a core file of its own.
[[noreturn]] void die_of(int signal);

}  // namespace backtrail::server
