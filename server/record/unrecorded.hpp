#pragma once
/// @file
/// Runs a program that cannot be recorded here as if there were no recorder.

#include <chrono>
#include <optional>

#include "arch/base/result.hpp"
#include "ptrace/tracee/launch_spec.hpp"

namespace backtrail::server {

/// Becomes the program. With a limit it is a child of this process, ended when it has run for that
/// long (SIGTERM, and SIGKILL a little later) and sent the signals that this process is sent.
/// @return Its exit status, 128 and the signal that ended it, or 124 after the limit. Errors of
/// become_program().
Result<int> run_unrecorded(const tracee::LaunchSpec& spec,
                           std::optional<std::chrono::milliseconds> limit);

}  // namespace backtrail::server
