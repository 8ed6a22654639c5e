// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Stop replies.
/// Source: GDB manual, "Stop Reply Packets"; the order of the fields is gdbserver's.

#include <string>

#include "server/session/session_context.hpp"

namespace backtrail::server {

/// Returns the stop reply for one event, with the fields that the client understands.
[[nodiscard]] std::string stop_reply(const SessionContext& context, const tracee::StopEvent& event);

/// Returns the event as a client that has just connected should see it: a plain stop after an
/// attach looks like the stop of a program just started (SIGTRAP).
[[nodiscard]] tracee::StopEvent as_fresh_stop(tracee::StopEvent event);

}  // namespace backtrail::server
