// SPDX-License-Identifier: Apache-2.0
// qRcmd: gdb's `monitor` command.

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "arch/base/log.hpp"
#include "server/handlers/handlers.hpp"
#include "server/handlers/monitor_bts.hpp"
#include "server/handlers/monitor_debug.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

constexpr std::string_view kHelp =
    "The following monitor commands are supported:\n"
    "  set debug <on|off|1|0>\n"
    "    Enable general debugging messages\n"
    "  set debug COMPONENT <on|off|1|0>\n"
    "    Enable debugging messages of one of: all, threads, remote, event-loop\n"
    "  set debug-hw-points <0|1>\n"
    "    Enable h/w breakpoint/watchpoint debugging messages\n"
    "  set remote-debug <0|1>\n"
    "    Enable remote protocol debugging messages\n"
    "  set event-loop-debug <0|1>\n"
    "    Enable event loop debugging messages\n"
    "  set debug-format option1[,option2,...]\n"
    "    Add additional information to debugging messages\n"
    "    Options: all, none, timestamp\n"
    "  set debug-file [PATH]\n"
    "    Write debugging messages to a file\n"
    "  set libthread-db-search-path [PATH]\n"
    "    Where to look for libthread_db\n"
    "  source\n"
    "    Show which source records each thread, and why\n"
    "  bts config|status|size|get|clear|drain ...\n"
    "    The selected thread's branch trace store (see backtrail-bts(7))\n"
    "  history [on|off]\n"
    "    Record what reverse-step and reverse-continue go back in, or show what is recorded\n"
    "  stats\n"
    "    Show how much was recorded\n"
    "  exit\n"
    "    Quit GDBserver\n";

void print(SessionContext& context, std::string_view text) {
  context.sink.send_packet("O" + rsp::to_hex(text));
}

/// Returns the words of a line; none is empty.
std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  PacketText text{line};
  while (!text.at_end()) {
    const std::string_view word = text.take_field(' ');
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

/// A kind of message that the user can turn on and off.
struct DebugSwitch {
  std::string_view name;
  std::string_view what;
  const char* on;  ///< Levels as log::configure takes them.
  const char* off;
};

constexpr std::array kSwitches = {
    DebugSwitch{"debug-hw-points", "H/W point debugging", "ptrace:debug", "ptrace:warn"},
    DebugSwitch{"remote-debug", "Protocol debug", "rsp:debug", "rsp:warn"},
    DebugSwitch{"event-loop-debug", "Event loop debug", "server:debug", "server:warn"},
};

bool set_switch(SessionContext& context, const DebugSwitch& entry, std::string_view value) {
  if (value != "0" && value != "1") return false;
  const bool on = value == "1";
  if (!log::configure(on ? entry.on : entry.off)) return false;
  print(context, fmt::format("{} output {}.\n", entry.what, on ? "enabled" : "disabled"));
  return true;
}

/// Accepts the formats for the sake of scripts; messages always carry the time.
bool set_debug_format(SessionContext& context, std::string_view options) {
  PacketText text{options};
  while (!text.at_end()) {
    const std::string_view option = text.take_field(',');
    if (option == "all") {
      print(context, "All extra debug format options enabled.\n");
    } else if (option == "none") {
      print(context, "All extra debug format options disabled.\n");
    } else if (option == "timestamp") {
      print(context, "The following extra debug format options are enabled: timestamp\n");
    } else {
      print(context, fmt::format("Unknown debug-format argument: \"{}\"\n", option));
      return false;
    }
  }
  return true;
}

bool set_thread_db_path(SessionContext& context, std::string_view path) {
  context.target.set_thread_db_search_path(std::string{path});
  print(context, fmt::format("libthread-db-search-path set to `{}'\n", path));
  return true;
}

enum class Outcome : std::uint8_t { kDone, kFailed, kUnknown };

Outcome outcome_of(bool done) {
  return done ? Outcome::kDone : Outcome::kFailed;
}

/// Answers a client that knows error texts, so gdb 16 and later, as gdbserver 16 does.
Outcome run_set_debug(SessionContext& context, std::span<const std::string_view> words) {
  const DebugAnswer answer =
      set_debug(words, context.client.error_message ? DebugWording::kGdbserver16
                                                    : DebugWording::kGdbserver13);
  print(context, answer.text);
  return outcome_of(answer.done);
}

Outcome run_set(SessionContext& context, std::string_view name, std::string_view value) {
  for (const DebugSwitch& entry : kSwitches) {
    if (entry.name != name) continue;
    return set_switch(context, entry, value) ? Outcome::kDone : Outcome::kUnknown;
  }
  if (name == "debug-format") return outcome_of(set_debug_format(context, value));
  if (name == "debug-file") {
    const std::string path{value.empty() ? std::string_view{"/dev/stderr"} : value};
    return outcome_of(log::to_file(path).has_value());
  }
  if (name == "libthread-db-search-path") return outcome_of(set_thread_db_path(context, value));
  return Outcome::kUnknown;
}

Result<void> prepare_for_store(BranchTracing& tracing, ThreadId thread,
                               std::span<const std::string_view> words) {
  if (wants_sched(words)) BT_CHECKED(tracing.mark_switches(thread));
  if (wants_kernel(words)) BT_CHECKED(tracing.see_kernel(thread));
  return makes_store(words) ? tracing.feed_stores(thread, wants_stream(words)) : Result<void>{};
}

Result<std::string> run_on_thread_store(BranchTracing& tracing, ThreadId thread,
                                        std::span<const std::string_view> words) {
  BT_TRY(decoder::BranchStore * store, tracing.store(thread));
  BT_CHECKED(prepare_for_store(tracing, thread, words));
  return run_bts_command(*store, words);
}

Result<std::string> run_on_process_store(const Target& target, BranchTracing& tracing, pid_t pid,
                                         std::span<const std::string_view> words) {
  BT_TRY(decoder::BranchStore * store, tracing.process_store(pid));
  for (const ThreadId thread : target.thread_ids(pid)) {
    const auto ready = prepare_for_store(tracing, thread, words);
    if (!ready && !ready.error().is(TraceErrc::kNotEnabled)) return fail(ready.error());
  }
  return run_bts_command(*store, words);
}

Outcome run_bts(SessionContext& context, std::span<const std::string_view> words) {
  BranchTracing* tracing = context.target.branch_tracing();
  const auto thread = context.selected_thread();
  auto answer = [&]() -> Result<std::string> {
    if (tracing == nullptr || !thread) return fail(TraceErrc::kNotEnabled, "bts");
    if (!take_process(words)) return run_on_thread_store(*tracing, *thread, words);
    return run_on_process_store(context.target, *tracing, thread->pid, words);
  }();
  if (!answer && answer.error().is(TraceErrc::kNotEnabled)) {
    answer = fail(errno_error(EOPNOTSUPP, "bts: branch tracing is not enabled"));
  }
  print(context, answer ? *answer : answer.error().message() + "\n");
  return Outcome::kDone;
}

Outcome run_history(SessionContext& context, std::span<const std::string_view> words) {
  BranchTracing* tracing = context.target.branch_tracing();
  if (words.size() > 1) return Outcome::kUnknown;
  if (tracing == nullptr) {
    print(context, "No branch tracing.\n");
    return Outcome::kDone;
  }
  if (!words.empty()) {
    if (words[0] != "on" && words[0] != "off") return Outcome::kUnknown;
    if (const auto done = tracing->keep_history(words[0] == "on"); !done) {
      print(context, tracing->why_no_history(done.error()) + "\n");
      return Outcome::kDone;
    }
  }
  print(context, tracing->describe_history());
  return Outcome::kDone;
}

Outcome run_command(SessionContext& context, std::string_view line) {
  const auto words = split_words(line);
  if (!words.empty() && words[0] == "bts") return run_bts(context, std::span{words}.subspan(1));
  if (!words.empty() && words[0] == "history") {
    return run_history(context, std::span{words}.subspan(1));
  }
  if (words.size() == 1 && words[0] == "help") {
    print(context, kHelp);
    return Outcome::kDone;
  }
  if (words.size() == 1 && words[0] == "exit") {
    context.fate = SessionFate::kExit;
    return Outcome::kDone;
  }
  if (words.size() == 1 && (words[0] == "source" || words[0] == "stats")) {
    BranchTracing* tracing = context.target.branch_tracing();
    print(context, (tracing != nullptr ? tracing->describe() : "No branch tracing.") + "\n");
    return Outcome::kDone;
  }
  if (words.size() > 2 && words[0] == "set" && words[1] == "debug") {
    return run_set_debug(context, std::span{words}.subspan(2));
  }
  if ((words.size() == 2 || words.size() == 3) && words[0] == "set") {
    return run_set(context, words[1], words.size() == 3 ? words[2] : std::string_view{});
  }
  return Outcome::kUnknown;
}

Reply monitor(SessionContext& context, std::string_view arguments) {
  const auto line = rsp::text_from_hex(arguments);
  if (!line) return Reply::error();
  switch (run_command(context, *line)) {
    case Outcome::kDone:
      return Reply::ok();
    case Outcome::kUnknown:
      print(context, "Unknown monitor command.\n\n");
      break;
    case Outcome::kFailed:
      break;
  }
  print(context, kHelp);
  return Reply::error();
}

constexpr std::array kMonitorPackets = {
    PacketEntry{"qRcmd,", PacketMatch::kPrefix, monitor},
};

}  // namespace

std::span<const PacketEntry> monitor_packets() {
  return kMonitorPackets;
}

}  // namespace backtrail::server::handlers
