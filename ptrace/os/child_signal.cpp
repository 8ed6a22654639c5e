#include "ptrace/os/child_signal.hpp"

#include <csignal>
#include <system_error>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace backtrail::tracee {

ChildSignal::ChildSignal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
    throw std::system_error{errno, std::system_category(), "pthread_sigmask"};
  }
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw std::system_error{errno, std::system_category(), "signalfd"};
}

void ChildSignal::drain() {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
  }
}

void ChildSignal::again() {
  (void)::raise(SIGCHLD);
}

ChildSignal::Woken ChildSignal::wait(int input_fd, std::chrono::milliseconds timeout) {
  pollfd fds[2] = {{fd_.get(), POLLIN, 0}, {input_fd, POLLIN, 0}};
  const int ready = ::poll(fds, input_fd >= 0 ? 2 : 1, static_cast<int>(timeout.count()));
  if (ready <= 0) return Woken::kTimeout;
  if (fds[0].revents != 0) {
    drain();
    return Woken::kChild;
  }
  return Woken::kInput;
}

}  // namespace backtrail::tracee
