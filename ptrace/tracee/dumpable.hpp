// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells whether the kernel would write a core of a process (PR_SET_DUMPABLE in prctl(2),
/// fs.suid_dumpable in proc(5)).

#include <optional>
#include <string>

namespace backtrail::tracee {

class Process;

/// Returns why the process's memory must not be written to a file, as part of a sentence ("it has
/// asked ..."); nullopt if the kernel would write it too.
[[nodiscard]] std::optional<std::string> why_not_dumpable(const Process& process);

}  // namespace backtrail::tracee
