#pragma once
/// @file
/// Runs a program and its children recorded, without gdb.
///
/// Entry type: Recorder. Who wants to look at a process before it is gone (to write a crash file,
/// say) is a RecordObserver.

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/codecache/persist/kept_store.hpp"
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

/// Told of what happens to recorded processes, on the tracing thread, in the order of events.
/// Whatever it does with the engine, it must not resume or detach threads, nor take events.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  /// The thread's trace has begun: a new process, a new thread. It is stopped. An exec goes on with
  /// the thread's trace and is seen there as a gap.
  virtual void on_thread(tracee::Thread& thread) { (void)thread; }
  /// A thread is at its end and its process goes on, as far as anybody knows. It is stopped, and
  /// has its native registers. Its trace may be taken (ThreadTrace::take_ended()).
  virtual void on_thread_end(tracee::Thread& thread) { (void)thread; }
  /// A sanitizer's run-time library begins to report an error of the thread, which is stopped and
  /// has its native registers. `may_end`: the process may end before the report is over.
  virtual void on_report(tracee::Thread& thread, bool may_end) { (void)thread, (void)may_end; }
  /// A program in Rust panics, and its message is about to be printed. As on_report().
  virtual void on_panic(tracee::Thread& thread) { (void)thread; }
  /// The process has become another program; it goes on with the thread that called exec.
  virtual void on_exec(pid_t pid) { (void)pid; }
  /// The thread goes on in another program. By that it may have got the leader's id; it is stopped.
  virtual void on_exec_thread(tracee::Thread& thread) { (void)thread; }
  /// The thread is gone, and the listeners to its trace have heard everything.
  virtual void on_thread_gone(tracee::ThreadId id) { (void)id; }
  /// Shall on_ending() be called? The answer for a process may change with every call.
  [[nodiscard]] virtual bool wants(pid_t pid, const Ending& ending) {
    (void)pid, (void)ending;
    return false;
  }
  /// The process is about to be gone, or may be. Every thread is stopped and has its native
  /// registers; memory, registers and traces can be read (flush the sources first). What is about
  /// to happen happens afterwards. `thread` is whose doing it is.
  virtual void on_ending(tracee::Process& process, tracee::Thread& thread, const Ending& ending) {
    (void)process, (void)thread, (void)ending;
  }
  /// The leak check of a process is over that was shown before it (kLeakCheck), and it ends now:
  /// kSanitizer for a leak, else kExit. Not told of every process.
  virtual void on_checked(pid_t pid, const Ending& ending) { (void)pid, (void)ending; }
  /// The process is gone; its threads' traces are, too.
  virtual void on_end(pid_t pid, const tracee::StopEvent& end) { (void)pid, (void)end; }
};

struct RecorderOptions {
  tracee::SourceKind source = tracee::SourceKind::kCache;
  bool traced = true;                      ///< false: follow everything, record nothing.
  std::uint64_t ring_bytes = 64ULL << 20;  ///< History of each thread.
  bool statistics = false;
  /// Observers who listen to threads' records get them this often, none left out; else nobody
  /// decodes what the histories do not need.
  std::optional<std::chrono::milliseconds> flush_every;
  /// Keep when threads were on a CPU, and where in their traces, where the kernel tells.
  bool times = false;
  /// The run is ended then: SIGTERM, and SIGKILL a little later.
  std::optional<std::chrono::milliseconds> limit;
  /// The kernel's side of hardware sources; null: the real one. Borrowed.
  tracee::PerfKernel* perf = nullptr;
};

/// A fault, or an abort, that a thread's handler was called for.
struct CaughtFault {
  int signal = 0;
  siginfo_t info{};
  TraceeAddr pc;  ///< What it interrupted.
};

class Recorder {
 public:
  explicit Recorder(const RecorderOptions& options);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Borrowed; before run().
  void add(RecordObserver& observer) { observers_.push_back(&observer); }
  [[nodiscard]] tracee::Engine& engine() { return engine_; }
  /// The process that was started; 0 before.
  [[nodiscard]] pid_t program() const { return program_; }
  /// The run took longer than its limit.
  [[nodiscard]] bool timed_out() const { return timed_out_; }

  /// Starts the program and follows it and its children until it ends; children that are left then
  /// go on natively. Signals that somebody sends to this process are passed on to the program.
  /// @return How the program ended. Errors of Engine::launch.
  Result<tracee::StopEvent> run(const tracee::LaunchSpec& spec);
  /// Sums over everything that has ended.
  [[nodiscard]] const tracee::SourceStatistics& statistics() const { return *statistics_; }
  [[nodiscard]] std::uint64_t processes_seen() const { return processes_seen_; }
  [[nodiscard]] std::uint64_t threads_seen() const { return threads_seen_; }
  /// A thread's last ones, oldest first; few.
  [[nodiscard]] std::span<const CaughtFault> caught_faults(tracee::ThreadId id) const;
  /// Processes that go on unrecorded.
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
  /// Shows a process to the observers, if any of them wants it.
  void look(tracee::ThreadId id, const Ending& ending);
  [[nodiscard]] bool wanted(pid_t pid, const Ending& ending) const;
  /// All of it is stopped.
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
  std::size_t most_clocks_;  ///< 0: the kernel lets us have none, or nobody wants them.
  std::shared_ptr<tracee::SourceStatistics> statistics_;
  std::shared_ptr<tracee::cache::KeptStore> kept_;
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
