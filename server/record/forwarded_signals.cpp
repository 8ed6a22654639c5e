// SPDX-License-Identifier: Apache-2.0
#include "server/record/forwarded_signals.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace backtrail::server {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

ForwardedSignals::ForwardedSignals() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (!is_ignored(signal)) ::sigaddset(&wanted, signal);
  }
  fd_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw std::system_error{errno, std::system_category(), "signalfd"};
  ::pthread_sigmask(SIG_BLOCK, &wanted, &old_mask_);
}

ForwardedSignals::~ForwardedSignals() {
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void ForwardedSignals::forward(pid_t pid, const std::function<void()>& before_first) {
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_code == SI_KERNEL) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGTERM && !std::exchange(terminated_, true)) before_first();
    ::kill(pid, signal);
  }
}

void die_of(int signal) {
  const rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::kill(::getpid(), signal);
  ::_exit(128 + signal);  // if the signal did not end this process
}

}  // namespace backtrail::server
