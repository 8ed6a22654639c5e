// SPDX-License-Identifier: Apache-2.0
#include "server/record/run_clock.hpp"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace backtrail::server {

RunClock::RunClock(int other_fd)
    : timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)},
      both_{::epoll_create1(EPOLL_CLOEXEC)} {
  for (const int fd : {timer_.get(), other_fd}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(both_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw std::system_error{errno, std::system_category(), "epoll_ctl"};
    }
  }
}

void RunClock::set(std::chrono::milliseconds time) {
  constexpr long kNanoseconds = 1'000'000;
  itimerspec when{};
  when.it_value.tv_sec = time.count() / 1000;
  when.it_value.tv_nsec = time.count() % 1000 * kNanoseconds;
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

bool RunClock::is_up() {
  std::uint64_t times = 0;
  return ::read(timer_.get(), &times, sizeof times) == static_cast<ssize_t>(sizeof times);
}

}  // namespace backtrail::server
