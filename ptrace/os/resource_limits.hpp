#pragma once
/// @file
/// Limits of other processes.

#include <cstdint>
#include <optional>

#include <sys/resource.h>
#include <sys/types.h>

namespace backtrail::tracee {

enum class LimitedResource : std::uint8_t { kAddressSpace, kData, kLockedMemory };

/// Nothing: the process is gone. Who may not ask for it (prlimit(2)) may read it.
[[nodiscard]] std::optional<rlimit> limit_of(pid_t pid, LimitedResource resource);

}  // namespace backtrail::tracee
