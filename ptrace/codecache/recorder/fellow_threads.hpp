// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The threads of a process that run translated code together.

#include <string>

namespace backtrail::tracee {
class Process;
struct SourceStatistics;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Makes the other threads leave translated code: each stops, and its source sees to it.
void evict(const Process& process);
/// Returns true if the code cache recorder has all threads: none runs code that it does not see.
[[nodiscard]] bool everybody_recorded(const Process& process);
/// Disables translated code for all threads of the process, which must have a space. Has no effect
/// the second time.
void disable(Process& process, SourceStatistics& sums, const std::string& why);

}  // namespace backtrail::tracee::cache
