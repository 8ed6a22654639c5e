// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Handles sanitizers' run-time libraries in recorded programs.
///
/// LeakSanitizer's check stops all threads by ptrace from a separate task, and fails if they are
/// traced already. It starts that task by a known system call, so the process is let go there.
///
/// The thread that made an error prints the report, in up to tens of millions of branches. The
/// beginning of a report is announced so that the thread's history can be kept as it is then.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "ptrace/engine/engine.hpp"
#include "ptrace/os/file_facts.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

class Sanitizers {
 public:
  /// Called when a report of the thread begins; `may_end`: the process may end before it is
  /// complete. The thread is stopped with native registers.
  using Reported = std::function<void(tracee::Thread& thread, bool may_end)>;
  /// Called when a Rust program panics, as for a report.
  using Panicked = std::function<void(tracee::Thread& thread)>;
  Sanitizers(tracee::Engine& engine, Reported reported, Panicked panicked)
      : engine_{engine}, reported_{std::move(reported)}, panicked_{std::move(panicked)} {}

  /// Call after an exec, before the program has run. Sets a breakpoint at its entry if it, or a
  /// library loaded with it, mentions a sanitizer.
  void on_exec(pid_t pid);
  void on_fork(pid_t parent, pid_t child);
  void on_end(pid_t pid) { processes_.erase(pid); }

  /// The meaning of a breakpoint stop.
  enum class Stop : std::uint8_t { kNotOurs, kGoOn, kLeakCheck };
  Stop on_breakpoint(tracee::Thread& thread);

  /// Returns true if the process was built with a sanitizer.
  [[nodiscard]] bool in(pid_t pid) const {
    const auto found = processes_.find(pid);
    return found != processes_.end() && found->second.sanitized;
  }
  /// Returns the program's argument of exit(); nullopt before the call.
  [[nodiscard]] std::optional<int> exit_code(pid_t pid) const;
  /// Returns the thread that is ending the process from inside a sanitizer's library; null if there
  /// is none. All threads must be stopped.
  tracee::Thread* ending_thread(tracee::Process& process) const;

 private:
  /// Limit on announced reports, for a process that continues after them.
  static constexpr unsigned kMostReports = 1000;
  enum class Told : std::uint8_t { kReport, kPassingReport, kPanic };
  struct Found {
    bool sanitized = false;
    TraceeAddr entry;  ///< Address of a breakpoint; 0 = none any more.
    std::set<TraceeAddr> leak_checks;
    std::map<TraceeAddr, Told> reports;  ///< Addresses at which reports begin.
    unsigned reports_left = kMostReports;
    TraceeAddr exit;  ///< Address of exit(), with a breakpoint; 0 = none any more.
    std::optional<int> exit_code;
  };
  /// Found in the names of a program's file.
  struct Names {
    bool sanitizer = false;
    bool panics = false;
  };
  /// Reads a file once for all processes that run it: a large program has megabytes of names.
  Names names_of(const std::string& path);
  void plant(tracee::Process& process, Found& found);
  void find_reports(tracee::Process& process, const tracee::MapEntry& map,
                    std::span<const tracee::MapEntry> maps, Found& found);
  void plant_report(pid_t pid, TraceeAddr address, Told what);
  void note_report(tracee::ThreadId id, Told what);
  void note_exit(tracee::Thread& thread, Found& found);

  tracee::Engine& engine_;
  Reported reported_;
  Panicked panicked_;
  std::map<pid_t, Found> processes_;
  std::map<tracee::FileFacts, Names> names_;
};

/// Returns true if `pc` is in code of a sanitizer's run-time library.
[[nodiscard]] bool lies_in_a_runtime(pid_t pid, std::span<const tracee::MapEntry> maps,
                                     TraceeAddr pc);
/// Returns true if the thread is in the system call that ends its process: exit_group.
[[nodiscard]] bool is_ending_process(tracee::Thread& thread);
/// Returns true if the thread is in the system call that ends a single thread: exit.
[[nodiscard]] bool is_ending_itself(tracee::Thread& thread);

}  // namespace backtrail::server
