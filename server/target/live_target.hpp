// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Target for live processes under ptrace.

#include <memory>

#include "ptrace/source/source_kind.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// All later calls must come from the thread that made the target. Its destructor kills the
/// processes it launched and detaches from those it attached to.
/// @param source  Source of branch traces; kAuto takes the best one available.
/// @param from_start  Records processes before the client asks; the client then gets the earlier
/// records too.
/// @param values  What is recorded besides branches for the past of programs. kMost needs kCache.
[[nodiscard]] std::unique_ptr<Target> make_live_target(
    tracee::SourceKind source, bool from_start = false,
    tracee::ValueDepth values = tracee::ValueDepth::kFree);

}  // namespace backtrail::server
