// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Sets the size of memory files.

#include <cstdint>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

/// Like ftruncate(2), but lifts RLIMIT_FSIZE meanwhile if this process may. Never raises SIGXFSZ.
/// Errors: EFBIG if the limit cannot be lifted; else the errno.
[[nodiscard]] Result<void> set_memory_file_size(int fd, std::uint64_t bytes);

}  // namespace backtrail::tracee
