#pragma once
/// @file
/// Sanitizers' run-time libraries in recorded programs.
///
/// LeakSanitizer's check stops all threads by ptrace, from a task of its own, and fails where a
/// tracer is there already. It starts that task by one known system call: there we let go.
///
/// Reports of errors are printed by the thread that made the error, in up to tens of millions of
/// branches: where one begins is told, so that the thread's history is kept as it is then.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "ptrace/engine/engine.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

class Sanitizers {
 public:
  /// A report of the thread begins; `may_end`: the process may end before it is over. The thread is
  /// stopped and has its native registers.
  using Reported = std::function<void(tracee::Thread& thread, bool may_end)>;
  /// A panic of a program in Rust begins, as a report does.
  using Panicked = std::function<void(tracee::Thread& thread)>;
  Sanitizers(tracee::Engine& engine, Reported reported, Panicked panicked)
      : engine_{engine}, reported_{std::move(reported)}, panicked_{std::move(panicked)} {}

  /// A program has just been executed, nothing of it has run. Plants a breakpoint where it begins
  /// if it, or what is loaded with it, names a sanitizer.
  void on_exec(pid_t pid);
  void on_fork(pid_t parent, pid_t child);
  void on_end(pid_t pid) { processes_.erase(pid); }

  /// What a breakpoint stop of a process means.
  enum class Stop : std::uint8_t { kNotOurs, kGoOn, kLeakCheck };
  Stop on_breakpoint(tracee::Thread& thread);

  /// The process was built with one.
  [[nodiscard]] bool in(pid_t pid) const {
    const auto found = processes_.find(pid);
    return found != processes_.end() && found->second.sanitized;
  }
  /// What the program has given to exit(), once it has called it.
  [[nodiscard]] std::optional<int> exit_code(pid_t pid) const;
  /// One of the threads, all of which are stopped, is ending the process from inside such a
  /// library.
  /// @return That thread.
  tracee::Thread* ending_thread(tracee::Process& process) const;

 private:
  /// Of a process that goes on and on after them only so many are told of.
  static constexpr unsigned kMostReports = 1000;
  enum class Told : std::uint8_t { kReport, kPassingReport, kPanic };
  struct Found {
    bool sanitized = false;
    TraceeAddr entry;  ///< A breakpoint is there; 0 = no more.
    std::set<TraceeAddr> leak_checks;
    std::map<TraceeAddr, Told> reports;  ///< Where they begin.
    unsigned reports_left = kMostReports;
    TraceeAddr exit;  ///< Where exit() begins: a breakpoint is there; 0 = no more.
    std::optional<int> exit_code;
  };
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
};

/// Code of a sanitizer's run-time library is there.
[[nodiscard]] bool lies_in_a_runtime(pid_t pid, std::span<const tracee::MapEntry> maps,
                                     TraceeAddr pc);
/// The system call that ends the process the thread belongs to: exit_group.
[[nodiscard]] bool is_ending_process(tracee::Thread& thread);
/// exit: of one thread.
[[nodiscard]] bool is_ending_itself(tracee::Thread& thread);

}  // namespace backtrail::server
