#pragma once
/// @file
/// What vRun, vAttach and the packets that end processes have in common.

#include "server/session/session_context.hpp"

namespace backtrail::server::handlers {

/// Several processes need the extended protocol and the multiprocess extension; otherwise there
/// can be one. Says on stderr when the answer is no.
[[nodiscard]] bool may_add_process(const SessionContext& context);

/// Drops what the session remembers of a process that is gone.
void forget_process(SessionContext& context, pid_t pid);

/// Ends every process.
void kill_all(SessionContext& context);

}  // namespace backtrail::server::handlers
