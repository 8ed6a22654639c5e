// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/file_size.hpp"

#include <cerrno>

#include <sys/resource.h>
#include <unistd.h>

namespace backtrail::tracee {

Result<void> set_memory_file_size(int fd, std::uint64_t bytes) {
  rlimit before{};
  if (::getrlimit(RLIMIT_FSIZE, &before) != 0) return fail_errno("getrlimit");
  const bool limited = before.rlim_cur < bytes;
  if (limited) {
    // Raise the soft limit alone or, in a privileged process, both.
    const rlimit lifted{before.rlim_max, before.rlim_max};
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    const bool done = (before.rlim_max >= bytes && ::setrlimit(RLIMIT_FSIZE, &lifted) == 0) ||
                      ::setrlimit(RLIMIT_FSIZE, &none) == 0;
    if (!done) return fail(errno_error(EFBIG, "make a file as large (RLIMIT_FSIZE)", bytes));
  }
  const bool set = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  const Error error = errno_error(errno, "ftruncate", bytes);
  if (limited) (void)::setrlimit(RLIMIT_FSIZE, &before);
  if (!set) return fail(error);
  return {};
}

}  // namespace backtrail::tracee
