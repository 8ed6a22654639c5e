// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/wake_ups.hpp"

#include <array>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kChild = 0;
constexpr std::uint64_t kTimer = ~std::uint64_t{0};
/// Interval of the timer. A perf event reports only once that there is something to read; the
/// report may get lost between this poll and the one on fd(). Records of a slow program are seen in
/// time this way, too.
constexpr long kLookAgainNs = 20'000'000;

void add(int epoll, int fd, std::uint64_t name) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = name;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

WakeUps::WakeUps(int child_fd)
    : epoll_{::epoll_create1(EPOLL_CLOEXEC)},
      timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)} {
  if (!epoll_ || !timer_) throw std::system_error{errno, std::system_category(), "epoll"};
  add(epoll_.get(), child_fd, kChild);
  add(epoll_.get(), timer_.get(), kTimer);
}

void WakeUps::set_timer() {
  itimerspec every{};
  if (!watched_.empty() || soon_) every.it_value.tv_nsec = kLookAgainNs;
  if (!watched_.empty()) every.it_interval.tv_nsec = kLookAgainNs;
  ::timerfd_settime(timer_.get(), 0, &every, nullptr);
}

void WakeUps::wake_soon() {
  if (std::exchange(soon_, true)) return;
  soon_at_ = Clock::now() + std::chrono::nanoseconds{kLookAgainNs};
  if (watched_.empty()) set_timer();
}

void WakeUps::watch(pid_t tid, int fd) {
  const auto old = watched_.find(tid);
  if (old != watched_.end()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, old->second, nullptr);
  add(epoll_.get(), fd, static_cast<std::uint64_t>(tid));
  watched_.insert_or_assign(tid, fd);
  if (watched_.size() == 1) set_timer();
}

/// Stops watching a descriptor that would be ready for ever.
void WakeUps::end(pid_t tid) {
  const auto found = watched_.find(tid);
  if (found != watched_.end()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second, nullptr);
  forget(tid);
}

void WakeUps::forget(pid_t tid) {
  if (watched_.erase(tid) != 0 && watched_.empty()) set_timer();
}

std::vector<pid_t> WakeUps::take() {
  if (watched_.empty() && (!soon_ || Clock::now() < soon_at_)) return {};
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  std::set<pid_t> out;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    const std::uint64_t name = event.data.u64;
    if (name == kTimer) {
      std::uint64_t ticks = 0;
      (void)!::read(timer_.get(), &ticks, sizeof ticks);
      soon_ = false;
      for (const auto& [tid, fd] : watched_) out.insert(tid);
    } else if (name != kChild) {
      out.insert(static_cast<pid_t>(name));
      if ((event.events & EPOLLHUP) != 0) end(static_cast<pid_t>(name));
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace backtrail::tracee
