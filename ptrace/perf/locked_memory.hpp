// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Limits how much memory perf's buffers lock, and divides it among threads.
///
/// Source: kernel/events/core.c, perf_mmap(); perf_event_open(2), perf_event_mlock_kb.

#include <cstdint>
#include <optional>
#include <string>

namespace backtrail::tracee {

/// Returns how many bytes all perf buffers of this user may lock: perf_event_mlock_kb for each CPU
/// plus RLIMIT_MEMLOCK. nullopt if there is no limit: CAP_IPC_LOCK, or perf_event_paranoid is -1.
/// The user's other programs may have used part of it; the kernel does not tell how much.
/// @param proc The mount point of procfs.
[[nodiscard]] std::optional<std::uint64_t> locked_memory_limit(const std::string& proc = "/proc");

/// Returns the largest size in bytes for one thread's buffer when `threads` threads exist: at least
/// one page. Half of the limit stays free for later threads, whose shares shrink, because a buffer
/// in use cannot be made smaller. `limit` is the result of locked_memory_limit().
[[nodiscard]] std::uint64_t locked_memory_share(std::optional<std::uint64_t> limit,
                                                std::uint64_t threads);

}  // namespace backtrail::tracee
