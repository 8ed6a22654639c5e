#pragma once
/// @file
/// Files that are memory.

#include <cstdint>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

/// As ftruncate(2), whatever size this process may give to files (RLIMIT_FSIZE), as far as it may
/// set that itself. SIGXFSZ is not raised. Errors: errnos of the calls.
[[nodiscard]] Result<void> set_memory_file_size(int fd, std::uint64_t bytes);

}  // namespace backtrail::tracee
