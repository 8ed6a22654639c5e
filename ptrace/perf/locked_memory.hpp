#pragma once
/// @file
/// What perf's buffers may lock, and how threads share it.
///
/// Source: kernel/events/core.c, perf_mmap(); perf_event_open(2), perf_event_mlock_kb.

#include <cstdint>
#include <optional>
#include <string>

namespace backtrail::tracee {

/// How much memory all perf buffers of this user may lock: perf_event_mlock_kb for each CPU, and
/// RLIMIT_MEMLOCK. Nothing where there is no limit: CAP_IPC_LOCK, or perf_event_paranoid is -1.
/// The user's other programs have used some of it perhaps; the kernel tells nobody.
/// @param proc The mount point of procfs.
[[nodiscard]] std::optional<std::uint64_t> locked_memory_limit(const std::string& proc = "/proc");

/// The most that one thread's buffer may take when there are `threads` of them now. Half of the
/// limit is left to those that come later, who find less and less: a buffer in use cannot shrink.
/// At least a page. `limit` as locked_memory_limit() has it.
[[nodiscard]] std::uint64_t locked_memory_share(std::optional<std::uint64_t> limit,
                                                std::uint64_t threads);

}  // namespace backtrail::tracee
