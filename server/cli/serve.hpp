// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail serve`.

#include "server/cli/command_line.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// Launches or attaches to the program, listens, serves.
/// @return The exit status: 0; 1 if it could not start (the reason is on stderr, and no process is
/// left running); 128 + the number of the signal that ended it.
[[nodiscard]] int run_serve(const ServeOptions& options);

/// Serves a target that the caller has made; otherwise the same.
[[nodiscard]] int run_serve(const ServeOptions& options, Target& target);

}  // namespace backtrail::server
