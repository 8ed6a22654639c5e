// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Rules shared by vRun, vAttach and the packets that end processes.

#include "server/session/session_context.hpp"

namespace backtrail::server::handlers {

/// Returns whether another process may be added. More than one needs the extended protocol and the
/// multiprocess extension. Prints a notice on stderr if not.
[[nodiscard]] bool may_add_process(const SessionContext& context);

/// Drops the session's state of a process that is gone.
void forget_process(SessionContext& context, pid_t pid);

/// Kills every process.
void kill_all(SessionContext& context);

}  // namespace backtrail::server::handlers
