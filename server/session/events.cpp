// SPDX-License-Identifier: Apache-2.0
#include "server/session/events.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "server/rsp/gdb_signals.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/notices.hpp"
#include "server/session/stop_reply.hpp"

namespace backtrail::server {
namespace {

using tracee::StopEvent;
using tracee::StopKind;

/// Reports a process's end on the server's terminal. Over stdio that terminal is gdb's, and gdb
/// reports the end itself.
void announce_end(const SessionContext& context, const StopEvent& event) {
  if (context.state.launch.stdio_is_protocol) return;
  if (event.kind == StopKind::kProcessExited) notices::child_exited(event.exit_code);
  if (event.kind == StopKind::kProcessSignalled) {
    notices::child_signalled(static_cast<unsigned>(event.signal), gdb_signal_name(event.signal));
  }
}

bool is_end_of_something(const StopEvent& event) {
  return event.kind == StopKind::kProcessExited || event.kind == StopKind::kProcessSignalled ||
         event.kind == StopKind::kThreadExited || event.kind == StopKind::kNoResumed;
}

bool is_fork(const StopEvent& event) {
  return event.kind == StopKind::kFork || event.kind == StopKind::kVfork;
}

void deliver_non_stop(SessionContext& context, RunControl& run) {
  while (auto event = run.take_event()) {
    announce_end(context, *event);
    if (event->kind == StopKind::kNoResumed && !context.client.no_resumed) continue;
    queue_notification(context, std::move(*event));
  }
}

/// Queues the threads of the process that have an event, or else its first stopped thread. gdb
/// assumes that the other threads run; it stops them (vCont;t) or leaves them running as its mode
/// demands. Several plain stops at once can trip an assertion in gdb while it connects.
void queue_stops(SessionContext& context, RunControl* run, pid_t pid) {
  std::vector<StopEvent> plain;
  const auto queue = [&](StopEvent& stop) {
    if (run != nullptr) run->set_stop_known(stop.thread, true);
    context.notifications.push_back(std::move(stop));
  };
  bool eventful = false;
  for (const ThreadId thread : context.target.thread_ids(pid)) {
    if (run != nullptr && run->is_running(thread)) continue;
    StopEvent stop = context.target.last_stop(thread);
    if (stop.kind == StopKind::kStopped) {
      if (run != nullptr) run->set_stop_known(thread, false);
      plain.push_back(std::move(stop));
    } else {
      eventful = true;
      queue(stop);
    }
  }
  if (!eventful && !plain.empty()) queue(plain.front());
}

/// Queues the stops of all processes and reports the first.
Reply status_non_stop(SessionContext& context, RunControl* run) {
  context.notifications.clear();
  // Only ends that were never reported are taken from these events: last_stop() below reports all
  // others, and each must be reported once.
  while (run != nullptr) {
    auto event = run->take_event();
    if (!event) break;
    announce_end(context, *event);
    if (is_end_of_something(*event) && event->kind != StopKind::kNoResumed) {
      context.notifications.push_back(std::move(*event));
    }
  }
  for (const pid_t pid : context.target.processes()) queue_stops(context, run, pid);
  if (context.notifications.empty()) return Reply::ok();
  return Reply::text(stop_reply(context, context.notifications.front()));
}

/// Returns the last reported thread if it is alive, else a thread with an event, else the first
/// one.
std::optional<ThreadId> most_interesting(const SessionContext& context) {
  if (context.state.last_reported.pid != 0 && context.target.alive(context.state.last_reported)) {
    return context.state.last_reported;
  }
  for (const pid_t pid : context.target.processes()) {
    for (const ThreadId thread : context.target.thread_ids(pid)) {
      if (context.target.last_stop(thread).kind != StopKind::kStopped) return thread;
    }
  }
  return context.first_thread();
}

}  // namespace

std::string report_stop(SessionContext& context, const StopEvent& event) {
  if (!is_end_of_something(event)) {
    context.state.last_reported = event.thread;
    if (!context.disabled("Tthread")) context.general = context.in_use = event.thread;
  }
  if (event.kind == StopKind::kExec) context.documents.clear();
  return stop_reply(context, event);
}

Reply report_new_process(SessionContext& context, pid_t pid) {
  const auto threads = context.target.thread_ids(pid);
  if (threads.empty()) return Reply::error();
  return Reply::text(
      report_stop(context, as_fresh_stop(context.target.last_stop(threads.front()))));
}

void deliver_events(SessionContext& context) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return;
  if (context.state.non_stop) return deliver_non_stop(context, *run);
  if (!context.stop_reply_due) return;
  const auto event = run->take_event();
  if (!event) return;
  context.stop_reply_due = false;
  announce_end(context, *event);
  if (const auto message = run->take_message()) {
    context.sink.send_packet("O" + rsp::to_hex(*message));
  }
  context.sink.send_packet(report_stop(context, *event));
}

Reply current_status(SessionContext& context) {
  RunControl* run = context.target.run_control();
  if (context.state.non_stop) return status_non_stop(context, run);
  const bool was_running = run != nullptr && run->running();
  if (run != nullptr) {
    run->stop_all();
    if (const auto event = run->take_event()) {
      announce_end(context, *event);
      return Reply::text(report_stop(context, *event));
    }
  }
  const auto thread = most_interesting(context);
  if (!thread) return Reply::text("W00");
  const StopEvent stop = context.target.last_stop(*thread);
  return Reply::text(report_stop(context, was_running ? stop : as_fresh_stop(stop)));
}

Reply next_notification(SessionContext& context) {
  if (!context.notifications.empty()) context.notifications.pop_front();
  if (context.notifications.empty()) return Reply::ok();
  return Reply::text(stop_reply(context, context.notifications.front()));
}

void queue_notification(SessionContext& context, StopEvent event) {
  if (event.kind == StopKind::kExec) context.documents.clear();
  const bool idle = context.notifications.empty();
  context.notifications.push_back(std::move(event));
  if (idle) {
    context.sink.send_notification("Stop:" + stop_reply(context, context.notifications.front()));
  }
}

std::vector<pid_t> discard_notifications(SessionContext& context, pid_t pid) {
  std::vector<pid_t> children;
  auto& queue = context.notifications;
  if (queue.empty()) return children;
  const auto is_dropped = [&](const StopEvent& event) {
    if (event.thread.pid != pid) return false;
    if (is_fork(event)) children.push_back(event.child.pid);
    return true;
  };
  // The client already has the first stop: its vStopped must not acknowledge another one.
  queue.erase(std::remove_if(std::next(queue.begin()), queue.end(), is_dropped), queue.end());
  return children;
}

bool is_queued(const SessionContext& context, ThreadId thread) {
  return std::ranges::find(context.notifications, thread, &StopEvent::thread) !=
         context.notifications.end();
}

bool is_unannounced_child(const SessionContext& context, ThreadId thread) {
  return std::ranges::find(context.notifications, thread, &StopEvent::child) !=
         context.notifications.end();
}

bool forward_events(Target& target) {
  RunControl* run = target.run_control();
  if (run == nullptr) return true;
  while (const auto event = run->take_event()) {
    if (is_end_of_something(*event)) {
      if (target.processes().empty()) return false;
      continue;
    }
    const ThreadResume order{event->thread,
                             {.signal = event->kind == StopKind::kSignal ? event->signal : 0}};
    // The thread may have ended meanwhile; that event comes by itself.
    static_cast<void>(run->resume({&order, 1}));
    if (event->kind != StopKind::kThreadCloned) continue;
    run->set_thread_options(event->thread, {});
    run->set_thread_options(event->child, {});
    const ThreadResume first{event->child, {}};
    static_cast<void>(run->resume({&first, 1}));
  }
  return true;
}

}  // namespace backtrail::server
