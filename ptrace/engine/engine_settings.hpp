// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the client wants to hear of, and how threads stop for it.

#include <csignal>
#include <optional>
#include <set>

namespace backtrail::tracee {

/// Events that are reported only to clients that understand them.
struct ReportedEvents {
  bool fork = false;
  bool vfork = false;
  bool exec = false;
  bool threads = false;
  bool exits = false;  ///< kExiting; must be set before launch(), for the program and its children.
  bool tracing = false;  ///< kTraceRequest; must be set before launch(), and needs the source
                         ///< `cache`.
};

/// The client's choices. The engine owns them and its parts read them. Signals are Linux numbers.
struct EngineSettings {
  /// Signals that the program gets without an event.
  std::set<int> pass_signals{};
  /// Signals that the program may still get when the client detaches; nullopt: all but SIGTRAP and
  /// SIGINT.
  std::optional<std::set<int>> program_signals{};
  ReportedEvents reported{};
  bool non_stop = false;  ///< An event stops its own thread only.
  /// The tracing thread may share a CPU with a thread that stops for signals all the time
  /// (StopCpu).
  bool follows_signals = false;
};

/// Returns the numbers of all signals.
[[nodiscard]] inline std::set<int> all_signals() {
  std::set<int> all;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) all.insert(signal);
  return all;
}

}  // namespace backtrail::tracee
