// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Resource limits of other processes.

#include <cstdint>
#include <optional>

#include <sys/resource.h>
#include <sys/types.h>

namespace backtrail::tracee {

enum class LimitedResource : std::uint8_t { kAddressSpace, kData, kLockedMemory };

/// Returns nullopt if the process is gone. Reads /proc, because prlimit(2) requires more
/// privileges.
[[nodiscard]] std::optional<rlimit> limit_of(pid_t pid, LimitedResource resource);

}  // namespace backtrail::tracee
