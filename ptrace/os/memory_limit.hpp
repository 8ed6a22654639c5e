// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How much memory there is for this process: cgroups(7).

#include <cstdint>
#include <string>
#include <string_view>

namespace backtrail::tracee {

/// Returns the smallest limit, in bytes, that a memory cgroup of the process has; ~0 if there is
/// none.
/// @param cgroups  The text of /proc/self/cgroup.
/// @param root     Where the cgroups are mounted: /sys/fs/cgroup.
[[nodiscard]] std::uint64_t memory_cgroup_limit(std::string_view cgroups, const std::string& root);
/// Returns the machine's memory, or the limit of a cgroup if that is smaller, in bytes.
[[nodiscard]] std::uint64_t memory_at_hand();

}  // namespace backtrail::tracee
