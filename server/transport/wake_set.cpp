// SPDX-License-Identifier: Apache-2.0
#include "server/transport/wake_set.hpp"

#include <cerrno>
#include <system_error>

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace backtrail::server {

WakeSet::WakeSet()
    : epoll_{::epoll_create1(EPOLL_CLOEXEC)}, always_ready_{::eventfd(1, EFD_CLOEXEC)} {
  if (!epoll_) throw std::system_error{errno, std::system_category(), "epoll_create1"};
  if (!always_ready_) throw std::system_error{errno, std::system_category(), "eventfd"};
}

void WakeSet::watch(const std::map<int, std::uint32_t>& wanted) {
  if (wanted == watched_) return;
  for (const auto& [fd, events] : watched_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, always_ready_.get(), nullptr);
  for (const auto& [fd, events] : wanted) {
    epoll_event event{};
    event.events = events;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 || errno != EPERM) continue;
    event.events = EPOLLIN;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, always_ready_.get(), &event);
  }
  watched_ = wanted;
}

}  // namespace backtrail::server
