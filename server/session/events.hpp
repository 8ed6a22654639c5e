#pragma once
/// @file
/// From the target's events to stop replies and notifications.
///
/// All-stop: one resume is answered by one event; others wait in the target until the next resume.
/// Non-stop: every event goes into a queue whose first entry is sent as `%Stop`; the client fetches
/// the rest with vStopped.

#include <optional>

#include "server/session/session_context.hpp"

namespace backtrail::server {

/// Takes what the target has and tells the client what it may be told now.
void deliver_events(SessionContext& context);

/// `?`: why the target stands still. Stops it first in all-stop.
[[nodiscard]] Reply current_status(SessionContext& context);

/// vStopped: the first notification was understood; the next one, or OK when there is none.
[[nodiscard]] Reply next_notification(SessionContext& context);

/// Non-stop: queues a stop that no target event tells of (after an attach).
void queue_notification(SessionContext& context, tracee::StopEvent event);

/// Forgets what is queued about a process that is gone or let go.
void discard_notifications(SessionContext& context, pid_t pid);

/// All-stop: makes the event's thread the selected one and gives the reply to send.
[[nodiscard]] std::string report_stop(SessionContext& context, const tracee::StopEvent& event);

/// The stop of a process that was just started or taken over, in all-stop.
[[nodiscard]] Reply report_new_process(SessionContext& context, pid_t pid);

/// A thread whose stop is in the queue: the client has not taken note of it yet.
[[nodiscard]] bool is_queued(const SessionContext& context, ThreadId thread);

/// The child of a fork that is still in the queue.
[[nodiscard]] bool is_unannounced_child(const SessionContext& context, ThreadId thread);

/// What happens to events while nobody is connected: threads go on with their signals.
/// @return False when the last process has ended.
bool forward_events(Target& target);

}  // namespace backtrail::server
