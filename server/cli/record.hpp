// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail record`.

#include "server/cli/command_line.hpp"

namespace backtrail::server {

/// Runs the program recorded. Returns its exit status, or ends by the signal that ended it. Returns
/// 127 if the program cannot be found, 126 if it cannot be executed, like a shell.
int run_record(const RecordOptions& options);

}  // namespace backtrail::server
