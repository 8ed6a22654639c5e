// SPDX-License-Identifier: Apache-2.0
// H, T, qC, qfThreadInfo, qAttached: select and list threads.

#include <array>
#include <string>

#include "server/handlers/handlers.hpp"
#include "server/session/events.hpp"
#include "server/session/thread_pattern.hpp"

namespace backtrail::server::handlers {
namespace {

/// Returns a thread that matches: the one named, or the first of the process named.
std::optional<ThreadId> find_thread(const SessionContext& context, const ThreadPattern& pattern) {
  if (pattern.pid > 0 && pattern.tid > 0) {
    const ThreadId thread{pattern.pid, pattern.tid};
    if (context.target.alive(thread)) return thread;
    return std::nullopt;
  }
  for (const pid_t pid : context.target.processes()) {
    for (const ThreadId thread : context.target.thread_ids(pid)) {
      if (pattern.matches(thread)) return thread;
    }
  }
  return std::nullopt;
}

std::optional<ThreadPattern> parse_pattern(std::string_view arguments) {
  PacketText text{arguments};
  const auto pattern = take_thread_pattern(text);
  if (!text.at_end()) return std::nullopt;
  return pattern;
}

/// Handles Hg, and Hs, which gdbserver accepts without effect.
Reply select_general(SessionContext& context, std::string_view arguments) {
  const auto pattern = parse_pattern(arguments);
  // The pattern for all threads selects none.
  if (!pattern || pattern->pid == ThreadPattern::kAll ||
      (pattern->pid == ThreadPattern::kAny && pattern->tid == ThreadPattern::kAll)) {
    return Reply::error();
  }
  std::optional<ThreadId> thread;
  if (pattern->is_any()) {
    thread = context.selected_thread();
    if (!thread) thread = context.first_thread();
  } else {
    thread = find_thread(context, *pattern);
  }
  if (!thread) return Reply::error();
  context.general = *thread;
  return Reply::ok();
}

Reply select_continue(SessionContext& context, std::string_view arguments) {
  const auto pattern = parse_pattern(arguments);
  if (!pattern || !find_thread(context, *pattern)) return Reply::error();
  context.continue_threads = *pattern;
  return Reply::ok();
}

Reply select_step(SessionContext& context, std::string_view arguments) {
  const auto pattern = parse_pattern(arguments);
  return pattern && find_thread(context, *pattern) ? Reply::ok() : Reply::error();
}

Reply thread_alive(SessionContext& context, std::string_view arguments) {
  const auto pattern = parse_pattern(arguments);
  if (!pattern || pattern->tid <= 0) return Reply::error();
  const auto thread = find_thread(context, *pattern);
  if (!thread || context.target.has_ended(*thread)) return Reply::error();
  context.in_use = *thread;
  return Reply::ok();
}

Reply current_thread(SessionContext& context, std::string_view /*arguments*/) {
  if (context.disabled("qC")) return Reply::unknown();
  auto thread = context.selected_thread();
  if (!thread) thread = context.first_thread();
  if (!thread) return Reply::error();
  return Reply::text("QC" + context.format(*thread));
}

Reply first_thread_info(SessionContext& context, std::string_view /*arguments*/) {
  if (context.disabled("qfThreadInfo")) return Reply::unknown();
  if (RunControl* run = context.target.run_control()) run->update_thread_list();
  std::string list;
  for (const pid_t pid : context.target.processes()) {
    for (const ThreadId thread : context.target.thread_ids(pid)) {
      if (is_unannounced_child(context, thread)) continue;
      list += list.empty() ? 'm' : ',';
      list += context.format(thread);
      // A client reads longer lists through qXfer:threads, which has no limit.
      if (list.size() > Session::kPacketSize - 64) return Reply::text(list);
    }
  }
  if (list.empty()) return Reply::error();
  return Reply::text(list);
}

Reply more_thread_info(SessionContext& context, std::string_view /*arguments*/) {
  if (context.disabled("qfThreadInfo")) return Reply::unknown();
  return context.has_process() ? Reply::text("l") : Reply::error();
}

Reply attached(SessionContext& context, std::string_view arguments) {
  std::optional<pid_t> pid = context.selected_process();
  PacketText text{arguments};
  if (text.take(':')) pid = take_pid(text);
  if (!text.at_end()) return Reply::unknown();
  if (!pid || !context.has_process(*pid)) return Reply::error();
  return Reply::text(context.target.was_attached(*pid) ? "1" : "0");
}

constexpr std::array kThreadsPackets = {
    PacketEntry{"Hg", PacketMatch::kPrefix, select_general},
    PacketEntry{"Hc", PacketMatch::kPrefix, select_continue},
    PacketEntry{"Hs", PacketMatch::kPrefix, select_step},
    PacketEntry{"T", PacketMatch::kPrefix, thread_alive},
    PacketEntry{"qC", PacketMatch::kWhole, current_thread},
    PacketEntry{"qfThreadInfo", PacketMatch::kWhole, first_thread_info},
    PacketEntry{"qsThreadInfo", PacketMatch::kWhole, more_thread_info},
    PacketEntry{"qAttached", PacketMatch::kPrefix, attached},
};

}  // namespace

std::span<const PacketEntry> thread_packets() {
  return kThreadsPackets;
}

}  // namespace backtrail::server::handlers
