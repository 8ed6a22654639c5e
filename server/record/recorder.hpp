// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs a program and its children recorded, without gdb.
///
/// Entry type: Recorder. Code that inspects a process before it is gone, for example to write a
/// crash file, is a RecordObserver.

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "server/record/ending.hpp"
#include "server/record/forwarded_signals.hpp"
#include "server/record/leak_watch.hpp"
#include "server/record/left_processes.hpp"
#include "server/record/run_clock.hpp"
#include "server/record/sanitizers.hpp"

namespace backtrail::server {

/// Told of events of recorded processes, on the tracing thread, in order. An observer may use the
/// engine but must not resume or detach threads or take events.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  /// A trace began, for a new process or thread, which is stopped. After an exec the thread's trace
  /// continues and contains a gap.
  virtual void on_thread(tracee::Thread& thread) { (void)thread; }
  /// A thread is at its end, and its process apparently continues. The thread is stopped with
  /// native registers. Its trace may be taken (ThreadTrace::take_ended()).
  virtual void on_thread_end(tracee::Thread& thread) { (void)thread; }
  /// A sanitizer's run-time library begins to report an error of the thread, which is stopped with
  /// native registers. `may_end`: the process may end before the report is complete.
  virtual void on_report(tracee::Thread& thread, bool may_end) { (void)thread, (void)may_end; }
  /// A Rust program panics and is about to print its message; otherwise as on_report().
  virtual void on_panic(tracee::Thread& thread) { (void)thread; }
  /// The process has executed another program; the thread that called exec continues.
  virtual void on_exec(pid_t pid) { (void)pid; }
  /// The thread continues in another program and may now have the leader's id; it is stopped.
  virtual void on_exec_thread(tracee::Thread& thread) { (void)thread; }
  /// The thread is gone, and the consumers of its trace have got everything.
  virtual void on_thread_gone(tracee::ThreadId id) { (void)id; }
  /// Returns true if on_ending() should be called. The answer may differ with every call.
  [[nodiscard]] virtual bool wants(pid_t pid, const Ending& ending) {
    (void)pid, (void)ending;
    return false;
  }
  /// The process ends or may end now. Every thread is stopped with native registers; memory,
  /// registers and traces can be read (flush the sources first). The event itself takes effect
  /// afterwards. `thread` caused it.
  virtual void on_ending(tracee::Process& process, tracee::Thread& thread, const Ending& ending) {
    (void)process, (void)thread, (void)ending;
  }
  /// The leak check is over that was announced by on_ending() with kLeakCheck, and the process ends
  /// now: kSanitizer for a leak, else kExit. Not called for every process.
  virtual void on_checked(pid_t pid, const Ending& ending) { (void)pid, (void)ending; }
  /// The process and its threads' traces are gone.
  virtual void on_end(pid_t pid, const tracee::StopEvent& end) { (void)pid, (void)end; }
};

struct RecorderOptions {
  tracee::SourceKind source = tracee::SourceKind::kCache;
  bool traced = true;                      ///< false: follow all processes but record nothing.
  std::uint64_t ring_bytes = 64ULL << 20;  ///< Size of each thread's history.
  bool statistics = false;
  tracee::ValueDepth values = tracee::ValueDepth::kFree;
  /// Interval at which observers that listen to threads' records get them, without omissions.
  /// nullopt: only what the histories need is decoded.
  std::optional<std::chrono::milliseconds> flush_every;
  /// Keep the times at which threads were on a CPU, and where in their traces, if the kernel tells.
  bool times = false;
  /// Time limit of the run: SIGTERM then, and SIGKILL a little later.
  std::optional<std::chrono::milliseconds> limit;
  /// Kernel for the hardware sources; null: the real one. Borrowed.
  tracee::PerfKernel* perf = nullptr;
};

/// A fault, or an abort, for which a handler of the program was called.
struct CaughtFault {
  int signal = 0;
  siginfo_t info{};
  TraceeAddr pc;  ///< pc of the interrupted instruction.
};

class Recorder {
 public:
  explicit Recorder(const RecorderOptions& options);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Adds an observer; borrowed. Call before run().
  void add(RecordObserver& observer) { observers_.push_back(&observer); }
  [[nodiscard]] tracee::Engine& engine() { return engine_; }
  /// The process that was started; 0 before.
  [[nodiscard]] pid_t program() const { return program_; }
  /// Returns true if the run exceeded its limit.
  [[nodiscard]] bool timed_out() const { return timed_out_; }

  /// Starts the program and follows it and its children until it ends; remaining children then
  /// continue natively. Signals that are sent to this process are passed on to the program.
  /// @return How the program ended. Errors: those of Engine::launch().
  Result<tracee::StopEvent> run(const tracee::LaunchSpec& spec);
  /// Sums over everything that has ended.
  [[nodiscard]] const tracee::SourceStatistics& statistics() const { return *statistics_; }
  [[nodiscard]] std::uint64_t processes_seen() const { return processes_seen_; }
  [[nodiscard]] std::uint64_t threads_seen() const { return threads_seen_; }
  /// Returns a thread's most recent caught faults, oldest first; only a few are kept.
  [[nodiscard]] std::span<const CaughtFault> caught_faults(tracee::ThreadId id) const;
  /// Processes that continue unrecorded.
  [[nodiscard]] const LeftProcesses& left() const { return left_; }

 private:
  void begin_thread(tracee::ThreadId id);
  void handle(const tracee::StopEvent& event);
  void pass_signals_unseen();
  void handle_signal(const tracee::StopEvent& event);
  void handle_exiting(const tracee::StopEvent& event);
  void handle_breakpoint(const tracee::StopEvent& event);
  void handle_trace_request(const tracee::StopEvent& event);
  void leave(tracee::ThreadId id);
  bool leaves_unreadable(tracee::ThreadId id);
  void handle_checked(pid_t pid, bool by_sanitizer, int exit_code);
  /// Shows a process to the observers if any of them wants it.
  void look(tracee::ThreadId id, const Ending& ending);
  [[nodiscard]] bool wanted(pid_t pid, const Ending& ending) const;
  /// Requires that the whole process is stopped.
  void show(tracee::ThreadId id, const Ending& ending);
  void look_at_all(const Ending& ending);
  void end_the_run();
  void flush_all();
  void look_at_clocks();
  void note_caught(const tracee::StopEvent& event);
  void go_on(tracee::ThreadId id, int signal = 0);
  void let_go_of_the_rest();

  RecorderOptions options_;
  ForwardedSignals signals_;
  RunClock clock_{signals_.fd()};
  RunClock flush_clock_{clock_.fd()};
  RunClock look_clock_{flush_clock_.fd()};
  std::size_t most_clocks_;  ///< 0: the kernel does not permit clocks, or they are not wanted.
  std::shared_ptr<tracee::SourceStatistics> statistics_;
  std::shared_ptr<tracee::cache::PersistentStore> kept_;
  std::shared_ptr<tracee::cache::SpareMemory> spare_;
  tracee::Engine engine_;
  Sanitizers sanitizers_{engine_,
                         [this](tracee::Thread& thread, bool may_end) {
                           for (RecordObserver* observer : observers_)
                             observer->on_report(thread, may_end);
                         },
                         [this](tracee::Thread& thread) {
                           for (RecordObserver* observer : observers_) observer->on_panic(thread);
                         }};
  LeakWatch leak_watch_{[this](pid_t pid, bool by_sanitizer, int exit_code) {
    handle_checked(pid, by_sanitizer, exit_code);
  }};
  std::vector<RecordObserver*> observers_;
  pid_t program_ = 0;
  bool timed_out_ = false;
  std::optional<tracee::StopEvent> end_;
  LeftProcesses left_;
  std::map<tracee::ThreadId, std::vector<CaughtFault>> caught_faults_;
  std::uint64_t processes_seen_ = 0;
  std::uint64_t threads_seen_ = 0;
};

}  // namespace backtrail::server
