// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/unique_fd.hpp"

#include <cerrno>
#include <utility>

#include <unistd.h>

namespace backtrail::tracee {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) reset(other.release());
  return *this;
}

int UniqueFd::release() noexcept {
  return std::exchange(fd_, -1);
}

void UniqueFd::reset(int fd) noexcept {
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  const int saved_errno = errno;
  // Not repeated on EINTR: Linux has closed the descriptor by then.
  ::close(old);
  errno = saved_errno;
}

}  // namespace backtrail::tracee
