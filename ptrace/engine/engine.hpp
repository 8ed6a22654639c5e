#pragma once
/// @file
/// All traced processes: the only place that waits for them, and the rules by which they stop and
/// go on.
///
/// Entry type: Engine. It knows nothing of packets. Everything is called from one thread, the one
/// that traces (ptrace(2) wants it so).

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/engine/spare_cpu.hpp"
#include "ptrace/engine/stop_cpu.hpp"
#include "ptrace/engine/wake_ups.hpp"
#include "ptrace/os/child_signal.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/source/source_kind.hpp"
#include "ptrace/tracee/breakpoint.hpp"
#include "ptrace/tracee/launch_spec.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/resume_action.hpp"
#include "ptrace/tracee/stop_event.hpp"

namespace backtrail::tracee {

/// Which of the events that not every client understands are reported.
struct ReportedEvents {
  bool fork = false;
  bool vfork = false;
  bool exec = false;
  bool threads = false;
  bool exits = false;    ///< kExiting; asked for before launch(), of it and its children.
  bool tracing = false;  ///< kTraceRequest; likewise, under the source `cache`.
};

class Engine {
 public:
  explicit Engine(SourceKind source);
  /// Kills what was launched, lets go of what was attached.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Processes. Errors of launch_process(); of ptrace(PTRACE_SEIZE).
  Result<pid_t> launch(const LaunchSpec& spec);
  /// Error kBusy when it is traced by us already.
  Result<pid_t> attach(pid_t pid);
  Result<void> detach(pid_t pid);
  /// detach() of a process that was launched; its end is reported all the same. When `last` runs
  /// again no thread of the process is traced any more.
  /// @param before_last  Called when all others are let go, and `last` is as it will go on.
  Result<void> let_go(ThreadId last, const std::function<void()>& before_last = {});
  Result<void> kill(pid_t pid);
  /// Processes the client knows of.
  [[nodiscard]] std::vector<Process*> processes() const;
  [[nodiscard]] Process* find(pid_t pid) const;
  [[nodiscard]] Thread* find(ThreadId id) const;

  // Running and stopping.
  void set_non_stop(bool on) { non_stop_ = on; }
  /// The calling thread may be moved to the CPU of a thread that stops for signals all the time
  /// (StopCpu). For who creates nothing outside the calls that stop or launch something.
  void set_follows_signals(bool on) { follows_signals_ = on; }
  /// True while it is on that CPU, and the two run in turns: pump() gives its own turn away before
  /// it returns with nothing, so that whoever calls it again at once waits for nothing in vain.
  [[nodiscard]] bool runs_in_turns() const { return stop_cpu_.narrowed(); }
  Result<void> resume(std::span<const std::pair<ThreadId, ResumeAction>> orders);
  /// The client's Ctrl-C: one running thread stops and reports SIGINT, whatever its signal mask.
  void interrupt();
  /// Stops everything without an event.
  void stop_all();
  /// Does something while no thread of the process runs; those that ran go on afterwards.
  void while_stopped(pid_t pid, const std::function<void()>& action);
  /// The same, where the thread, which has stopped, is to go on with a signal that will end its
  /// process: the others are left as they are, and the kernel ends them so. Should it not come to
  /// that they go on a little later.
  void end_after(ThreadId id, int signal, const std::function<void()>& action);
  /// Handles what has happened, without waiting; while threads are executed in software it goes on
  /// until there is an event or `input_fd` is readable.
  void pump(int input_fd);
  /// The oldest event of a thread the client has resumed. All-stop: everything is stopped then.
  std::optional<StopEvent> take_event();
  [[nodiscard]] bool running() const;
  [[nodiscard]] bool is_running(ThreadId id) const;
  /// Becomes readable when pump() has something to do.
  [[nodiscard]] int event_fd() const { return wake_ups_.fd(); }

  // What is reported. Linux signal numbers.
  std::set<int> pass_signals;
  std::optional<std::set<int>> program_signals;
  ReportedEvents reported;
  /// Asked first about stops of tasks that are not the engine's, or not any more; true: seen to.
  std::function<bool(pid_t, const WaitStatus&)> on_stranger;
  /// Called for a thread that is recorded, though the client has not asked for it yet, from now on.
  std::function<void(Thread&)> on_recorded_unasked;
  /// What is launched or attached to from now on is recorded at once, so that a client who asks
  /// later gets what was before. Format kBts; of which form it will be the client decides.
  std::optional<TraceConfig> from_start;
  /// `reported.threads`, also of what has happened and nobody was told yet: a client that stops
  /// listening has seen who is there by itself.
  void report_threads(bool on);

  // Breakpoints. Errors as Target's (kBusy, kUnreadable, kNotFound, kUnsupported).
  Result<void> insert(pid_t pid, BreakpointSpec spec);
  Result<void> remove(pid_t pid, const BreakpointSpec& spec);

  // Branch tracing.
  Result<void> enable_trace(ThreadId id, const TraceConfig& config);
  Result<void> disable_trace(ThreadId id);
  /// Listeners of the thread's trace want every record from now on (BranchSource::stream). Errors
  /// kNotEnabled, kNotFound, and the source's.
  Result<void> stream_trace(ThreadId id);
  /// Listeners of the thread's trace hear when it gets and leaves a CPU. Errors kNotEnabled,
  /// kNotFound, and the kernel's.
  Result<void> mark_switches(ThreadId id);
  /// The store of the thread's trace hears of the kernel's branches from now on. Errors
  /// kNotEnabled, kNotFound, and the source's.
  Result<void> see_kernel(ThreadId id);
  [[nodiscard]] SourceKind source() const { return source_; }

 private:
  using Clock = std::chrono::steady_clock;
  using ConditionKey = std::pair<pid_t, std::pair<BreakpointKind, TraceeAddr>>;

  // engine_events.cpp: what a wait status means.
  bool wait_one(pid_t tid = -1);
  void handle(pid_t tid, const WaitStatus& status);
  void handle_end(Thread& thread, const WaitStatus& status);
  void handle_stop(Thread& thread, const WaitStatus& status);
  void handle_event_stop(Thread& thread);
  void let_fault_come(Thread& thread);
  void handle_clone(Thread& parent);
  void handle_fork(Thread& parent, bool vfork);
  void handle_vfork_done(Thread& thread);
  void handle_exec(Thread& thread);
  void handle_exiting(Thread& thread);
  void handle_trace_request(Thread& thread);
  void handle_syscall(Thread& thread);
  void handle_signal(Thread& thread, int signal);
  [[nodiscard]] bool is_passed(Thread& thread, int signal) const;
  void pass_or_post(Thread& thread, int signal);
  void handle_trap(Thread& thread);
  void handle_breakpoint_insn(Thread& thread);
  bool handle_debug_registers(Thread& thread);
  void handle_step_done(Thread& thread);
  void handle_first_stop(Thread& thread);
  void post(Thread& thread, StopEvent event);
  [[nodiscard]] bool condition_holds(Thread& thread, BreakpointKind kind, TraceeAddr address) const;
  Result<Process*> adopt_child(Thread& parent, pid_t child_pid);
  void release_child(Process& child);

  // engine_run.cpp: setting threads going and stopping them.
  void go(Thread& thread);
  void set_going(Thread& thread);
  void resume_order(Thread& thread, const ResumeAction& action);
  void drop_stale_event(Thread& thread, const ResumeAction& action);
  void ask_to_stop(Thread& thread);
  void stop_threads(const std::function<bool(const Thread&)>& which);
  void let_go_on(pid_t pid);
  void let_all_go_on();
  void report_exits_of_others(ThreadId id, bool on);
  bool wait_until(const std::function<bool()>& done, std::chrono::milliseconds limit);
  void bury_zombie_leaders();
  void ask_again();
  void stop_who_is_due();
  [[nodiscard]] std::chrono::milliseconds wait_slice() const;
  void note_due(Thread& thread);
  [[nodiscard]] bool executes_in_software() const;
  /// For as long as that is likely to be of use, looks whether threads ask for something, or stop;
  /// true once one has.
  bool serve_asking();
  void ask_each(int handled);
  /// Lets the thread run with which the calling thread shares its CPU; true when something has
  /// stopped then.
  bool wait_in_turn();
  Thread* oldest_pending();
  void drop_pending(Thread& thread);
  std::optional<StopEvent> take_thread_event();

  // engine_step_over.cpp: past breakpoints whose conditions are false.
  bool wait_for_step_over(Thread& thread);
  bool do_step_overs();
  std::vector<ThreadId> take_queued(pid_t pid);
  void step_over_one(Thread& thread);

  // engine_trace.cpp
  Result<void> change_trace(ThreadId id, const std::function<Result<void>(ThreadTrace&)>& change);
  void watch_buffer(Thread& thread);
  void read_buffers();
  void start_beside(Thread& thread, SourceKind source, const TraceConfig& config);
  void record_unasked(Thread& thread, SourceKind source, const TraceConfig& config);
  void record_from_birth(Thread& thread);
  void record_from_start(Process& process);
  void record_beside(Process& process);
  /// If the last thread that was asked for has ended.
  void end_trace_beside(Thread& thread);
  Result<void> hand_over_trace(ThreadId id, const TraceConfig& config);
  /// Acts on each of them, those that ran being stopped for as long.
  void each_stopped(const std::vector<ThreadId>& ids, const std::function<void(Thread&)>& action);

  // engine.cpp
  Thread& add_thread(Process& process, pid_t tid);
  void forget_thread(Thread& thread);
  void forget_process(pid_t pid);
  void take_terminal_back();
  Result<void> seize_tasks(Process& process);
  Result<void> detach_all(pid_t pid, pid_t last, const std::function<void()>& before_last = {});
  void detach_one(Thread& thread);
  [[nodiscard]] int detach_signal(Thread& thread) const;

  SourceKind source_;
  ChildSignal child_signal_;
  WakeUps wake_ups_{child_signal_.fd()};
  std::map<pid_t, std::unique_ptr<Process>> processes_;
  std::unordered_map<pid_t, Thread*> by_tid_;
  std::unordered_map<pid_t, WaitStatus> unclaimed_;  ///< First stops seen before their clone event.
  std::deque<std::pair<std::uint64_t, StopEvent>> ended_;  ///< Ends of processes.
  std::map<std::uint64_t, pid_t> posted_;  ///< Threads with pending events, some that had one.
  std::set<pid_t> let_go_;
  SpareCpu spare_cpu_;
  StopCpu stop_cpu_;
  /// Threads whose stop gave way to a signal that an instruction had raised, and since when.
  std::map<pid_t, Clock::time_point> faults_awaited_;
  /// Threads at breakpoints whose conditions are false, in the order in which they got there.
  std::deque<ThreadId> step_overs_;
  std::set<pid_t> due_;     ///< Threads that may have to stop at a time their source knows.
  std::set<pid_t> asking_;  ///< Threads that may ask for something without stopping.
  std::map<ConditionKey, std::function<bool(ThreadId)>> conditions_;
  /// Who gets the terminal back when there is nobody left to debug.
  std::optional<pid_t> terminal_owner_;
  std::uint64_t next_order_ = 1;
  std::size_t handled_since_asked_ = 0;  ///< Stops, since ask_each() asked.
  bool non_stop_ = false;
  bool follows_signals_ = false;
  bool resumed_one_ended_ = false;  ///< A thread that the client had resumed is gone.
};

}  // namespace backtrail::tracee
