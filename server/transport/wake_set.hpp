// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Combines several descriptors into one to poll.

#include <cstdint>
#include <map>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// An epoll instance whose descriptor is readable while any member is ready. It does not say which
/// one.
class WakeSet {
 public:
  /// Throws std::system_error.
  WakeSet();

  /// Watches exactly these descriptors from now on: descriptor -> EPOLLIN, EPOLLOUT or both. Files
  /// that cannot be polled count as always ready. Remove a member before closing it; its number may
  /// be reused.
  void watch(const std::map<int, std::uint32_t>& wanted);
  /// Returns the descriptor to poll.
  [[nodiscard]] int fd() const { return epoll_.get(); }

 private:
  tracee::UniqueFd epoll_;
  tracee::UniqueFd always_ready_;
  std::map<int, std::uint32_t> watched_;
};

}  // namespace backtrail::server
