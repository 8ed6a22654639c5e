#pragma once
/// @file
/// The target that most sessions have: live processes under ptrace.

#include <memory>

#include "ptrace/source/source_kind.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// All later calls must come from the thread that made it. Destroying it kills the processes it
/// launched and lets go of those it attached to.
/// @param source How branch traces are made; kAuto takes the best there is.
/// @param from_start  Processes are recorded before the client asks, who then gets what was before.
[[nodiscard]] std::unique_ptr<Target> make_live_target(tracee::SourceKind source,
                                                       bool from_start = false);

}  // namespace backtrail::server
