#pragma once
/// @file
/// Several descriptors as one that a poll can watch.

#include <cstdint>
#include <map>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// An epoll instance: its descriptor is readable while any member is ready. It says that something
/// is to be done, not what.
class WakeSet {
 public:
  /// Throws std::system_error.
  WakeSet();

  /// Watches exactly these from now on: descriptor -> EPOLLIN, EPOLLOUT or both. Files that cannot
  /// be polled count as always ready. A member that is to be closed has to be taken out before, or
  /// its number in another use will be taken for it.
  void watch(const std::map<int, std::uint32_t>& wanted);
  /// The descriptor to poll.
  [[nodiscard]] int fd() const { return epoll_.get(); }

 private:
  tracee::UniqueFd epoll_;
  tracee::UniqueFd always_ready_;
  std::map<int, std::uint32_t> watched_;
};

}  // namespace backtrail::server
