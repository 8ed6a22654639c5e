#pragma once
/// @file
/// Stop replies.
/// Source: GDB manual, "Stop Reply Packets"; the order of the fields is gdbserver's.

#include <string>

#include "server/session/session_context.hpp"

namespace backtrail::server {

/// The stop reply for one event, with whatever the client is able to understand.
[[nodiscard]] std::string stop_reply(const SessionContext& context, const tracee::StopEvent& event);

/// The event as a client should see it that has just met the process: a thread that merely stands
/// still after an attach looks as if it had just been started.
[[nodiscard]] tracee::StopEvent as_fresh_stop(tracee::StopEvent event);

}  // namespace backtrail::server
