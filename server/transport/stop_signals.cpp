// SPDX-License-Identifier: Apache-2.0
#include "server/transport/stop_signals.hpp"

#include <cerrno>
#include <system_error>

#include <sys/signalfd.h>
#include <unistd.h>

namespace backtrail::server {
namespace {

extern "C" void ignore_signal(int /*signal*/) {}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals() {
  struct sigaction nothing {};
  nothing.sa_handler = ignore_signal;
  ::sigaction(SIGPIPE, is_ignored(SIGPIPE) ? nullptr : &nothing, &old_pipe_);
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    if (!is_ignored(signal)) ::sigaddset(&wanted, signal);
  }
  fd_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw std::system_error{errno, std::system_category(), "signalfd"};
  ::pthread_sigmask(SIG_BLOCK, &wanted, &old_mask_);
}

StopSignals::~StopSignals() {
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
}

std::optional<int> StopSignals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

}  // namespace backtrail::server
