#pragma once
/// @file
/// Sanitizers' run-time libraries in recorded programs.
///
/// LeakSanitizer's check stops all threads by ptrace, from a task of its own, and fails where a
/// tracer is there already. It starts that task by one known system call: there we let go.

#include <map>
#include <optional>
#include <set>
#include <span>

#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/engine.hpp"

namespace backtrail::server {

class Sanitizers {
 public:
  explicit Sanitizers(tracee::Engine& engine) : engine_{engine} {}

  /// A program has just been executed, nothing of it has run. Plants a breakpoint where it begins
  /// if it, or what is loaded with it, names a sanitizer.
  void on_exec(pid_t pid);
  void on_fork(pid_t parent, pid_t child);
  void on_end(pid_t pid) { processes_.erase(pid); }

  /// What a breakpoint stop of a process means.
  enum class Stop : std::uint8_t { kNotOurs, kGoOn, kLeakCheck };
  Stop on_breakpoint(tracee::Thread& thread);

  /// The process was built with one.
  [[nodiscard]] bool in(pid_t pid) const { return processes_.contains(pid); }
  /// What the program has given to exit(), once it has called it.
  [[nodiscard]] std::optional<int> exit_code(pid_t pid) const;
  /// One of the threads, all of which are stopped, is ending the process from inside such a
  /// library.
  /// @return That thread.
  tracee::Thread* ending_thread(tracee::Process& process) const;

 private:
  struct Found {
    TraceeAddr entry;  ///< A breakpoint is there; 0 = no more.
    std::set<TraceeAddr> leak_checks;
    TraceeAddr exit;  ///< Where exit() begins: a breakpoint is there; 0 = no more.
    std::optional<int> exit_code;
  };
  void find_leak_checks(tracee::Process& process, Found& found);
  void note_exit(tracee::Thread& thread, Found& found);

  tracee::Engine& engine_;
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
