#pragma once
/// @file
/// Where a program that makes code tells its names.

#include <string>

#include <sys/types.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

/// What is read at most: the end of the file, which names the youngest code.
inline constexpr std::size_t kMostPerfMapBytes = 64U << 20U;

/// The process's own /tmp/perf-PID.map, by the root and the id that it knows. Empty: there is none,
/// or somebody else has put it there (anybody may), or it is no file.
[[nodiscard]] std::string read_perf_map(pid_t pid, const ProcFs& proc = ProcFs{});

}  // namespace backtrail::tracee
