// SPDX-License-Identifier: Apache-2.0
// vCont, c, s, C, S, bs, bc, vCtrlC, `?`, vStopped: resume threads, forward and back, and report
// their stops.

#include <array>
#include <vector>

#include "server/handlers/handlers.hpp"
#include "server/handlers/vcont_parser.hpp"
#include "server/rsp/gdb_signals.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/events.hpp"

namespace backtrail::server::handlers {
namespace {

using tracee::ResumeAction;
using tracee::ResumeKind;

/// Non-stop: returns whether the order applies to the thread in its current state. A wildcard must
/// neither disturb running threads nor resume a thread whose stop the client has not acknowledged.
bool applies(const SessionContext& context, const RunControl& run, ThreadId thread,
             const ResumeAction& action) {
  if (!context.state.non_stop) return true;
  if (is_queued(context, thread) || is_unannounced_child(context, thread)) return false;
  // The target decides about threads whose stops are not queued yet.
  return action.kind == ResumeKind::kStop || !run.is_running(thread);
}

Reply resume(SessionContext& context, const std::vector<VContAction>& actions) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return Reply::error();
  const auto in_use = context.thread_in_use();
  if (PastControl* past = context.target.past_control(); past != nullptr && in_use) {
    past->prefer(*in_use);
  }
  std::vector<ThreadResume> orders;
  bool anybody = false;
  for (const pid_t pid : context.target.processes()) {
    for (const ThreadId thread : context.target.thread_ids(pid)) {
      const ResumeAction* action = action_for(actions, thread);
      if (action == nullptr) continue;
      if (action->kind == ResumeKind::kStop && !context.state.non_stop) return Reply::error();
      anybody = true;
      if (applies(context, *run, thread, *action)) orders.push_back({thread, *action});
    }
  }
  for (const ThreadId thread : run->untold_thread_ends()) {
    const ResumeAction* action = action_for(actions, thread);
    if (action == nullptr) continue;
    anybody = true;
    orders.push_back({thread, *action});
  }
  // In non-stop a thread may end just before it is named, and its end is on its way to the client,
  // which takes an error for a lost target.
  if (!anybody && !context.state.non_stop) return Reply::error();
  if (!orders.empty() && !run->resume(orders)) return Reply::error();
  if (context.state.non_stop) return Reply::ok();
  context.stop_reply_due = true;
  return Reply::none();
}

Reply vcont(SessionContext& context, std::string_view arguments) {
  if (context.disabled("vCont")) return Reply::unknown();
  const auto actions = parse_vcont(arguments);
  if (!actions) return Reply::error();
  return resume(context, *actions);
}

Reply vcont_actions(SessionContext& context, std::string_view /*arguments*/) {
  if (context.disabled("vCont") || context.target.run_control() == nullptr) {
    return Reply::unknown();
  }
  return Reply::text("vCont;c;C;t;s;S;r");
}

/// Resumes in the way of the packets before vCont: the action applies to the Hc thread if one was
/// chosen, otherwise to the selected thread while all others continue.
Reply resume_old_style(SessionContext& context, ResumeAction action) {
  const auto selected = context.selected_thread();
  if (!selected) return Reply::error();
  const bool one_only = context.continue_threads.pid > 0 || context.continue_threads.tid > 0;
  std::vector<VContAction> actions;
  if (one_only) {
    actions.push_back({action, context.continue_threads});
  } else {
    actions.push_back({action, {selected->pid, selected->tid}});
    actions.push_back({{}, {ThreadPattern::kAll, ThreadPattern::kAll}});
  }
  return resume(context, actions);
}

Reply resume_plainly(SessionContext& context, std::string_view arguments, ResumeKind kind) {
  // Resuming at another address is not supported; gdb writes the pc instead.
  if (!arguments.empty()) return Reply::unknown();
  return resume_old_style(context, {.kind = kind});
}

Reply resume_with_signal(SessionContext& context, std::string_view arguments, ResumeKind kind) {
  PacketText text{arguments};
  const auto number = text.take_hex();
  if (!number || *number > 0xff || !text.at_end()) return Reply::error();
  // Like gdbserver, drop a signal that Linux does not have instead of refusing the packet.
  const int signal = from_gdb_signal(static_cast<int>(*number)).value_or(0);
  return resume_old_style(context, {.kind = kind, .signal = signal});
}

Reply go_on(SessionContext& context, std::string_view arguments) {
  return resume_plainly(context, arguments, ResumeKind::kContinue);
}
Reply step(SessionContext& context, std::string_view arguments) {
  return resume_plainly(context, arguments, ResumeKind::kStep);
}
Reply go_on_with_signal(SessionContext& context, std::string_view arguments) {
  return resume_with_signal(context, arguments, ResumeKind::kContinue);
}
Reply step_with_signal(SessionContext& context, std::string_view arguments) {
  return resume_with_signal(context, arguments, ResumeKind::kStep);
}

/// Non-stop, a live program. gdb expects no error here: it would take the thread for a running one.
Reply refuse_to_go_back(SessionContext& context, ThreadId thread) {
  context.sink.send_packet(
      "O" + rsp::to_hex(std::string_view{
                "A live program goes back in all-stop mode only: set non-stop off.\n"}));
  queue_notification(context, {.thread = thread, .kind = tracee::StopKind::kHistoryBegin});
  return Reply::none();
}

/// Handles bs and bc: moves the Hc thread back, or the one in use if Hc names none, as gdb's does
/// unless its scheduler is locked.
Reply go_back(SessionContext& context, ResumeKind how) {
  PastControl* past = context.target.past_control();
  if (past == nullptr) return Reply::unknown();
  auto thread = context.thread_in_use();
  const ThreadPattern& chosen = context.continue_threads;
  if (thread && chosen.tid > 0) {
    thread = ThreadId{chosen.pid > 0 ? chosen.pid : thread->pid, chosen.tid};
  }
  if (!thread) return Reply::error();
  if (context.state.non_stop && past->lives_on()) return refuse_to_go_back(context, *thread);
  past->prefer(*thread);
  // The end of a thread that has been killed is the answer, and comes by itself.
  if (!past->go_back(*thread, how) && !context.target.has_ended(*thread)) return Reply::error();
  if (context.state.non_stop) return Reply::ok();
  context.stop_reply_due = true;
  return Reply::none();
}

Reply step_back(SessionContext& context, std::string_view /*arguments*/) {
  return go_back(context, ResumeKind::kStep);
}
Reply run_back(SessionContext& context, std::string_view /*arguments*/) {
  return go_back(context, ResumeKind::kContinue);
}

Reply interrupt(SessionContext& context, std::string_view /*arguments*/) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return Reply::unknown();
  run->interrupt();
  return Reply::ok();
}

Reply status(SessionContext& context, std::string_view /*arguments*/) {
  return current_status(context);
}

Reply notification_seen(SessionContext& context, std::string_view /*arguments*/) {
  return next_notification(context);
}

constexpr std::array kResumePackets = {
    PacketEntry{"?", PacketMatch::kWhole, status},
    PacketEntry{"vCont?", PacketMatch::kWhole, vcont_actions},
    PacketEntry{"vCont;", PacketMatch::kPrefix, vcont},
    PacketEntry{"bs", PacketMatch::kWhole, step_back},
    PacketEntry{"bc", PacketMatch::kWhole, run_back},
    PacketEntry{"vCtrlC", PacketMatch::kWhole, interrupt},
    PacketEntry{"vStopped", PacketMatch::kWhole, notification_seen},
    PacketEntry{"c", PacketMatch::kPrefix, go_on},
    PacketEntry{"s", PacketMatch::kPrefix, step},
    PacketEntry{"C", PacketMatch::kPrefix, go_on_with_signal},
    PacketEntry{"S", PacketMatch::kPrefix, step_with_signal},
};

}  // namespace

std::span<const PacketEntry> resume_packets() {
  return kResumePackets;
}

}  // namespace backtrail::server::handlers
