// SPDX-License-Identifier: Apache-2.0
// vAttach, vKill, D, k: attach to, kill and detach from processes.

#include <array>

#include "server/handlers/handlers.hpp"
#include "server/handlers/process_rules.hpp"
#include "server/session/events.hpp"
#include "server/session/notices.hpp"

namespace backtrail::server::handlers {
namespace {

Reply attach(SessionContext& context, std::string_view arguments) {
  ProcessControl* control = context.target.process_control();
  if (control == nullptr) return Reply::unknown();
  if (!may_add_process(context)) return Reply::error();
  PacketText text{arguments};
  const auto pid = take_pid(text);
  if (!pid || !text.at_end()) return Reply::error();
  const auto attached = control->attach(*pid);
  if (!attached) return Reply::error(attached.error(), context.error_form());
  notices::attached(*attached);
  if (!context.state.non_stop) return report_new_process(context, *attached);
  // The threads report when the client asks them to stop. Before, gdb does not know the process.
  return Reply::ok();
}

/// Returns the process that "D;PID" or plain "D" means; nullopt if there is none.
std::optional<pid_t> process_to_detach(const SessionContext& context, std::string_view arguments) {
  PacketText text{arguments};
  if (!text.take(';')) return text.at_end() ? context.selected_process() : std::nullopt;
  const auto pid = take_pid(text);
  if (!pid || !text.at_end() || !context.has_process(*pid)) return std::nullopt;
  return pid;
}

Reply detach(SessionContext& context, std::string_view arguments) {
  const auto pid = process_to_detach(context, arguments);
  if (!pid) return Reply::error();
  ProcessControl* control = context.target.process_control();
  if (control == nullptr) {  // a core has no process to detach from, but the client is done
    context.fate = SessionFate::kExit;
    return Reply::ok();
  }
  notices::detaching(*pid);
  const bool started_here = !context.target.was_attached(*pid);
  if (!control->detach(*pid)) return Reply::error();
  forget_process(context, *pid);
  for (const pid_t child : discard_notifications(context, *pid)) {
    // The child may have ended meanwhile.
    static_cast<void>(control->detach(child));
  }
  if (!context.state.extended && !context.has_process()) {
    if (started_here) context.state.detached_child = *pid;
    context.fate = SessionFate::kExit;
  }
  return Reply::ok();
}

Reply kill_one(SessionContext& context, std::string_view arguments) {
  ProcessControl* control = context.target.process_control();
  if (control == nullptr) return Reply::unknown();
  PacketText text{arguments};
  const auto pid = take_pid(text);
  if (!pid || !text.at_end() || !context.has_process(*pid)) return Reply::error();
  if (!control->kill(*pid)) return Reply::error();
  forget_process(context, *pid);
  for (const pid_t child : discard_notifications(context, *pid)) {
    static_cast<void>(control->kill(child));
  }
  return Reply::ok();
}

/// Kills all processes; k never has a reply.
Reply kill_everything(SessionContext& context, std::string_view /*arguments*/) {
  if (context.has_process()) {
    notices::killing_all();
    kill_all(context);
    if (!context.state.extended) context.fate = SessionFate::kExit;
  }
  return Reply::none();
}

constexpr std::array kProcessesPackets = {
    PacketEntry{"vAttach;", PacketMatch::kPrefix, attach},
    PacketEntry{"vKill;", PacketMatch::kPrefix, kill_one},
    PacketEntry{"D", PacketMatch::kPrefix, detach},
    PacketEntry{"k", PacketMatch::kWhole, kill_everything},
};

}  // namespace

bool may_add_process(const SessionContext& context) {
  const bool several = context.state.extended && context.client.multiprocess;
  if (several || !context.has_process()) return true;
  notices::already_debugging();
  return false;
}

void forget_process(SessionContext& context, pid_t pid) {
  context.documents.clear();
  if (context.symbols && context.symbols->pid == pid) context.symbols.reset();
  if (context.state.last_reported.pid == pid) context.state.last_reported = {};
}

void kill_all(SessionContext& context) {
  ProcessControl* control = context.target.process_control();
  for (const pid_t pid : context.target.processes()) {
    if (control != nullptr) static_cast<void>(control->kill(pid));
    static_cast<void>(discard_notifications(context, pid));
    forget_process(context, pid);
  }
  context.stop_reply_due = false;
}

std::span<const PacketEntry> process_packets() {
  return kProcessesPackets;
}

}  // namespace backtrail::server::handlers
