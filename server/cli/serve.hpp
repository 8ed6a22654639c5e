#pragma once
/// @file
/// `backtrail serve`.

#include "server/cli/command_line.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// Starts or takes over what is asked for, listens, serves.
/// @return The exit status: 0; 1 when it could not start (said on stderr, nothing left running);
///         128 + a signal that ended it.
[[nodiscard]] int run_serve(const ServeOptions& options);

/// The same on a target that the caller has made.
[[nodiscard]] int run_serve(const ServeOptions& options, Target& target);

}  // namespace backtrail::server
