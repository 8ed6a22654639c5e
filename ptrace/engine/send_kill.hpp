// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// SIGKILL for a traced process.

#include "arch/base/result.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {

/// Sends SIGKILL to each thread by its own id, which no other task can get before the server has
/// waited for this one. Processes made by clone() are reached, too. Errors: kill(2)'s, if no thread
/// got it.
Result<void> send_kill(const Process& process);

}  // namespace backtrail::tracee
