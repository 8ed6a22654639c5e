// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads the symbol file of a program that generates code.

#include <string>

#include <sys/types.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

/// At most this many bytes are read: the end of the file, which names the youngest code.
inline constexpr std::size_t kMostPerfMapBytes = 64U << 20U;

/// Returns the contents of the process's own /tmp/perf-PID.map, under the root and the pid that the
/// process sees. Empty if there is none, if it is not a plain file, or if it belongs to another
/// user (any user may create such a file).
[[nodiscard]] std::string read_perf_map(pid_t pid, const ProcFs& proc = ProcFs{});

}  // namespace backtrail::tracee
