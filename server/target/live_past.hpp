// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The past of live processes.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptrace/engine/engine.hpp"
#include "server/target/live_end.hpp"
#include "server/target/program_past.hpp"

namespace backtrail::server {

/// Values derived from a stopped process are dropped when the process runs or is changed.
class LivePast final : public PastControl {
 public:
  /// `engine` is borrowed.
  /// @param values  What histories hold besides branches.
  LivePast(tracee::Engine& engine, tracee::ValueDepth values);
  ~LivePast() override;

  // PastControl
  [[nodiscard]] bool in_past(ThreadId thread) const override;
  Result<void> go_back(ThreadId thread, tracee::ResumeKind how) override;
  void prefer(ThreadId thread) override { preferred_ = thread; }
  std::size_t read_memory(ThreadId thread, TraceeAddr address,
                          std::span<std::uint8_t> out) override;
  [[nodiscard]] bool lives_on() const override { return true; }
  [[nodiscard]] std::string_view why_unchangeable() const override;

  /// How threads are recorded for their past.
  [[nodiscard]] tracee::TraceConfig history_config() const;
  /// Begins or ends the histories of all threads. Errors: kBusy while a thread is in the past; the
  /// source's.
  Result<void> keep_history(bool on);
  /// Describes what is recorded and what is known of it, for the user.
  [[nodiscard]] std::string describe_history() const;
  /// Returns true if a thread of the process is in the past.
  [[nodiscard]] bool any_in_past(pid_t pid) const;
  /// Moves a thread of `orders` in its past, or refuses to run the program while a thread that is
  /// not among them is in the past. Returns false if the program is to run: then no thread is in
  /// the past any more.
  bool resume(std::span<const ThreadResume> orders);
  /// Takes the event that ended the last move; nullopt if there is none.
  std::optional<tracee::StopEvent> take_event();
  /// Takes the message for the user about the last move; nullopt if there is none.
  std::optional<std::string> take_message();
  /// Puts the known registers at a thread's place in the past into `raw`.
  /// @return Whether each is known, by gdb's number.
  std::vector<bool> read_registers(ThreadId thread, arch::cpu::RawRegisters& raw);

  void insert(pid_t pid, const tracee::BreakpointSpec& breakpoint);
  void remove(pid_t pid, const tracee::BreakpointSpec& breakpoint);

  /// Call before the debugger writes the thread's registers. It is not in the past.
  void note_change(ThreadId thread);
  /// Call before the debugger writes the process's memory. No thread of it is in the past.
  void note_change(pid_t pid);
  /// Drops what is derived, as when traces change. No thread is in the past.
  void drop();
  /// Forgets a process that has ended, has been let go or has executed another program.
  void forget(pid_t pid);

 private:
  struct ProcessPast;
  void move(const ThreadResume& order);
  /// Returns null if there is no such process.
  ProcessPast* past_of(pid_t pid);
  [[nodiscard]] const ProcessPast* known_past_of(pid_t pid) const;

  tracee::Engine& engine_;
  tracee::ValueDepth values_;
  std::map<pid_t, PastStops> stops_;
  std::map<pid_t, PastChanges> changes_;
  std::map<pid_t, std::unique_ptr<ProcessPast>> processes_;
  ThreadId preferred_;
  std::optional<tracee::StopEvent> event_;
  std::string message_;
};

}  // namespace backtrail::server
