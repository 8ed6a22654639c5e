// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls that show or hand down a thread's affinity, which the recorder may have narrowed.

#include <cstdint>

namespace backtrail::tracee {

class Process;
class Thread;

/// Returns true for the calls (x86-64's numbers) that may show the affinity, that hand it down, or
/// after which the recorder may not be allowed to set it.
[[nodiscard]] bool concerns_affinity(std::uint64_t call);

/// Call before the stopped thread executes a system call natively: if the call concerns affinities,
/// or opens a file that shows them, those of all threads become the program's own.
void show_own_affinity(Process& process, Thread& thread);

}  // namespace backtrail::tracee
