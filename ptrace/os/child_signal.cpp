// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/child_signal.hpp"

#include <array>
#include <csignal>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

constexpr std::chrono::milliseconds kLookAgain{20};

}  // namespace

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
  // One that the kernel sent and one of again() can wait; a read that is not full has them all.
  std::array<signalfd_siginfo, 4> waiting;  // NOLINT: filled by the kernel
  ssize_t count = 0;
  do {
    count = ::read(fd_.get(), waiting.data(), sizeof waiting);
    if (count > 0) no_news_.reset();
  } while (count == static_cast<ssize_t>(sizeof waiting));
  just_drained_ = true;
}

void ChildSignal::note_no_news() {
  no_news_ = Clock::now();
}

bool ChildSignal::may_have_news() {
  const bool drained = std::exchange(just_drained_, false);
  if (!no_news_ || Clock::now() - *no_news_ > kLookAgain) return true;
  if (!drained) drain();
  return !no_news_;
}

void ChildSignal::again() {
  (void)::raise(SIGCHLD);
}

ChildSignal::Woken ChildSignal::wait(int input_fd, std::chrono::milliseconds timeout) {
  pollfd fds[2] = {{fd_.get(), POLLIN, 0}, {input_fd, POLLIN, 0}};
  const int ready = ::poll(fds, input_fd >= 0 ? 2 : 1, static_cast<int>(timeout.count()));
  if (ready <= 0) return Woken::kTimeout;
  if (fds[1].revents != 0) return Woken::kInput;
  drain();
  return Woken::kChild;
}

}  // namespace backtrail::tracee
