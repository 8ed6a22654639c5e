// SPDX-License-Identifier: Apache-2.0
// QNonStop, QPassSignals, QProgramSignals, QCatchSyscalls, QThreadEvents, QThreadOptions: which
// events to report and which to pass to the program without a report.

#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "server/handlers/handlers.hpp"
#include "server/handlers/thread_option_bits.hpp"
#include "server/rsp/gdb_signals.hpp"
#include "server/session/events.hpp"
#include "server/session/thread_pattern.hpp"

namespace backtrail::server::handlers {
namespace {

Reply non_stop(SessionContext& context, std::string_view arguments) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return arguments == "0" ? Reply::ok() : Reply::error();
  if (arguments != "0" && arguments != "1") return Reply::error();
  context.state.non_stop = arguments == "1";
  context.notifications.clear();
  run->set_non_stop(context.state.non_stop);
  return Reply::ok();
}

/// Parses "s;s;...", gdb's signal numbers, possibly none. Skips signals that Linux does not have.
std::optional<std::set<int>> parse_signals(std::string_view list) {
  std::set<int> signals;
  PacketText text{list};
  while (!text.at_end()) {
    const auto number = text.take_hex();
    if (!number) return std::nullopt;
    if (!text.at_end() && !text.take(';')) return std::nullopt;
    if (*number > 0xff) continue;
    const auto signal = from_gdb_signal(static_cast<int>(*number));
    // gdb has two numbers for one Linux signal (IO and POLL); the number that the server reports
    // counts.
    if (!signal || *signal == 0 || to_gdb_signal(*signal) != static_cast<int>(*number)) continue;
    signals.insert(*signal);
  }
  return signals;
}

Reply pass_signals(SessionContext& context, std::string_view arguments) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return Reply::unknown();
  auto signals = parse_signals(arguments);
  if (!signals) return Reply::error();
  run->set_pass_signals(std::move(*signals));
  return Reply::ok();
}

Reply program_signals(SessionContext& context, std::string_view arguments) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return Reply::unknown();
  auto signals = parse_signals(arguments);
  if (!signals) return Reply::error();
  run->set_program_signals(std::move(*signals));
  return Reply::ok();
}

/// Parses "1" (every system call) or "1;nr;nr..." (only these).
std::optional<std::set<std::int64_t>> parse_syscalls(std::string_view arguments) {
  PacketText text{arguments};
  std::set<std::int64_t> numbers;
  if (!text.take('1')) return std::nullopt;
  while (!text.at_end()) {
    if (!text.take(';')) return std::nullopt;
    const auto number = text.take_hex();
    if (!number || *number > 0xffffffffU) return std::nullopt;
    numbers.insert(static_cast<std::int64_t>(*number));
  }
  return numbers;
}

Reply catch_syscalls(SessionContext& context, std::string_view arguments) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return Reply::unknown();
  const auto pid = context.selected_process();
  if (!pid) return Reply::error();
  if (arguments == "0") return Reply::from(run->set_catch_syscalls(*pid, std::nullopt));
  auto numbers = parse_syscalls(arguments);
  if (!numbers) return Reply::error();
  return Reply::from(run->set_catch_syscalls(*pid, std::move(numbers)));
}

Reply thread_events(SessionContext& context, std::string_view arguments) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return Reply::unknown();
  if (arguments != "0" && arguments != "1") {
    return Reply::error(fmt::format("Unknown thread-events mode requested: {}", arguments));
  }
  run->set_thread_events(arguments == "1");
  return Reply::ok();
}

/// Takes ";OPTIONS" or ";OPTIONS:THREADS", with no threads named for all.
std::optional<std::pair<tracee::ThreadOptions, ThreadPattern>> take_thread_options(
    PacketText& text) {
  if (!text.take(';')) return std::nullopt;
  const auto bits = text.take_hex();
  if (!bits || (*bits & ~std::uint64_t{kAllThreadOptions}) != 0) return std::nullopt;
  const tracee::ThreadOptions options{.clones = (*bits & kThreadOptionClone) != 0,
                                      .exit = (*bits & kThreadOptionExit) != 0};
  if (!text.take(':')) return std::pair{options, ThreadPattern{}};
  const auto threads = take_thread_pattern(text);
  if (!threads) return std::nullopt;
  return std::pair{options, *threads};
}

/// Sets the options of each thread to the last ones in the packet that match it. Threads that match
/// none keep theirs, and so do threads that the client does not know: they have those of the thread
/// that made them.
Reply thread_options(SessionContext& context, std::string_view arguments) {
  RunControl* run = context.target.run_control();
  if (run == nullptr) return Reply::unknown();
  std::vector<std::pair<tracee::ThreadOptions, ThreadPattern>> choices;
  for (PacketText text{arguments}; !text.at_end();) {
    const auto choice = take_thread_options(text);
    if (!choice || (!text.at_end() && !text.next_is(';'))) return Reply::error();
    choices.push_back(*choice);
  }
  if (choices.empty()) return Reply::error();
  for (const pid_t pid : context.target.processes()) {
    for (const ThreadId thread : context.target.thread_ids(pid)) {
      if (is_unannounced_child(context, thread)) continue;
      for (const auto& [options, threads] : choices) {
        if (threads.matches(thread)) run->set_thread_options(thread, options);
      }
    }
  }
  return Reply::ok();
}

constexpr std::array kSettingsPackets = {
    PacketEntry{"QThreadOptions", PacketMatch::kPrefix, thread_options},
    PacketEntry{"QNonStop:", PacketMatch::kPrefix, non_stop},
    PacketEntry{"QPassSignals:", PacketMatch::kPrefix, pass_signals},
    PacketEntry{"QProgramSignals:", PacketMatch::kPrefix, program_signals},
    PacketEntry{"QCatchSyscalls:", PacketMatch::kPrefix, catch_syscalls},
    PacketEntry{"QThreadEvents:", PacketMatch::kPrefix, thread_events},
};

}  // namespace

std::span<const PacketEntry> setting_packets() {
  return kSettingsPackets;
}

}  // namespace backtrail::server::handlers
