// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs a program that cannot be recorded here as if there were no recorder.

#include <chrono>
#include <optional>

#include "arch/base/result.hpp"
#include "ptrace/tracee/launch_spec.hpp"

namespace backtrail::server {

/// Becomes the program. With a limit, the program is a child of this process instead: it is ended
/// at the limit (SIGTERM, and SIGKILL a little later) and gets the signals that are sent to this
/// process.
/// @return Its exit status; 128 plus the signal that ended it; or 124 after the limit. Errors:
/// those of become_program().
Result<int> run_unrecorded(const tracee::LaunchSpec& spec,
                           std::optional<std::chrono::milliseconds> limit);

}  // namespace backtrail::server
