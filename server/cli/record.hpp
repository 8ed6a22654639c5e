#pragma once
/// @file
/// `backtrail record`.

#include "server/cli/command_line.hpp"

namespace backtrail::server {

/// Runs the program recorded; returns its exit status, or ends as it ended, by the same signal.
/// 127 and 126 as a shell's when it cannot be found or executed.
int run_record(const RecordOptions& options);

}  // namespace backtrail::server
