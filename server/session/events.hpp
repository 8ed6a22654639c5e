// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Turns the target's events into stop replies and notifications.
///
/// All-stop: one event answers a resume; the others wait in the target until the next resume.
/// Non-stop: every event enters a queue. Its first entry is sent as `%Stop`; the client fetches the
/// rest with vStopped.

#include <optional>
#include <vector>

#include "server/session/session_context.hpp"

namespace backtrail::server {

/// Takes the target's events and reports those that the client may get now.
void deliver_events(SessionContext& context);

/// Handles `?`: reports why the target is stopped. In all-stop, stops it first.
[[nodiscard]] Reply current_status(SessionContext& context);

/// Handles vStopped: drops the acknowledged notification; returns the next one, or OK if there is
/// none.
[[nodiscard]] Reply next_notification(SessionContext& context);

/// Non-stop: queues a stop that has no event of the target's (after an attach).
void queue_notification(SessionContext& context, tracee::StopEvent event);

/// Drops queued stops of a process that is gone or detached.
/// @return The children of its forks that the client was not told of, and will not be.
std::vector<pid_t> discard_notifications(SessionContext& context, pid_t pid);

/// All-stop: selects the event's thread and returns the stop reply.
[[nodiscard]] std::string report_stop(SessionContext& context, const tracee::StopEvent& event);

/// All-stop: returns the stop reply for a process that was just launched or attached to.
[[nodiscard]] Reply report_new_process(SessionContext& context, pid_t pid);

/// Returns true if a stop of the thread is in the queue: the client has not acknowledged it yet.
[[nodiscard]] bool is_queued(const SessionContext& context, ThreadId thread);

/// Returns true if `thread` is the child of a fork whose event is still in the queue.
[[nodiscard]] bool is_unannounced_child(const SessionContext& context, ThreadId thread);

/// Handles events while no client is connected: resumes threads with their signals.
/// @return False when the last process has ended.
bool forward_events(Target& target);

}  // namespace backtrail::server
