// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All traced processes. The engine is the only code that waits for their threads, and decides when
/// they stop and run on.
///
/// Entry type: Engine, which knows nothing of packets. All calls must come from one thread, the
/// tracing thread, as ptrace(2) requires.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/engine/breakpoint_conditions.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/left_breakpoints.hpp"
#include "ptrace/engine/pending_events.hpp"
#include "ptrace/engine/spare_cpu.hpp"
#include "ptrace/engine/step_over_queue.hpp"
#include "ptrace/engine/stop_cpu.hpp"
#include "ptrace/engine/task_table.hpp"
#include "ptrace/engine/unclaimed_tasks.hpp"
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

/// Runs, stops and records the threads of all traced processes, and reports their events.
class Engine {
 public:
  explicit Engine(SourceKind source);
  /// Kills launched processes and detaches from attached ones.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Processes. Errors: those of launch_process() and of ptrace(PTRACE_SEIZE).
  Result<pid_t> launch(const LaunchSpec& spec);
  /// Error kBusy if the server traces the process already.
  Result<pid_t> attach(pid_t pid);
  /// A thread that waits for its vfork child cannot stop now: it is let go when the child has ended
  /// or executed another program, during a later pump().
  Result<void> detach(pid_t pid);
  /// Detaches from a launched process, whose end is reported nevertheless. By the time `last` runs
  /// again no thread of the process is traced.
  /// @param before_last Called when all other threads have been let go and `last` has the state it
  /// will run on with.
  Result<void> let_go(ThreadId last, const std::function<void()>& before_last = {});
  Result<void> kill(pid_t pid);
  /// Returns the processes that the client knows.
  [[nodiscard]] std::vector<Process*> processes() const { return tasks_.known(); }
  /// Returns the processes whose ends take_event() will still return. detach() and kill() of one
  /// succeed; then its end is not returned any more.
  [[nodiscard]] std::vector<const UntoldEnd*> untold_ends() const { return events_.untold_ends(); }
  [[nodiscard]] Process* find(pid_t pid) const { return tasks_.find(pid); }
  [[nodiscard]] Thread* find(ThreadId id) const { return tasks_.find(id); }

  // Running and stopping.
  void set_non_stop(bool on) { settings_.non_stop = on; }
  /// Allows keeping the calling thread on one CPU with a thread that stops for signals all the time
  /// (StopCpu).
  /// The caller must create threads and processes only within calls that stop or launch something:
  /// others would inherit that one CPU. It must call pump() at least every few milliseconds while
  /// shares_cpu().
  void set_follows_signals(bool on) { settings_.follows_signals = on; }
  /// Returns true while the calling thread shares its CPU with such a thread.
  [[nodiscard]] bool shares_cpu() const { return stop_cpu_.narrows(); }
  /// Returns true if the next signal should come at once. pump() then yields the CPU before it
  /// returns without an event, so the caller may call it again without waiting.
  [[nodiscard]] bool runs_in_turns() const { return stop_cpu_.in_turns(); }
  Result<void> resume(std::span<const std::pair<ThreadId, ResumeAction>> orders);
  /// Handles the client's Ctrl-C: one running thread stops and reports SIGINT, whatever its signal
  /// mask. If none can now, or another event comes first, the next thread that runs on does.
  void interrupt();
  /// Forgets a Ctrl-C that has not been reported yet, as when another client comes.
  void forget_interrupt();
  /// Stops everything without an event.
  void stop_all();
  /// Calls `action` while no thread of the process runs; threads that ran are resumed afterwards.
  void while_stopped(pid_t pid, const std::function<void()>& action);
  /// Calls `action` while no thread of the process runs, then resumes the stopped thread with a
  /// signal that will end the process. The other threads stay stopped until the kernel ends them.
  /// If the process does not end, they are resumed a little later.
  void end_after(ThreadId id, int signal, const std::function<void()>& action);
  /// Handles what has happened, without waiting. While threads are executed in software it
  /// continues until there is an event or `input_fd` is readable.
  void pump(int input_fd);
  /// Returns the oldest event of a thread that the client resumed. In all-stop, everything is
  /// stopped then.
  std::optional<StopEvent> take_event();
  [[nodiscard]] bool running() const { return tasks_.any_running(); }
  [[nodiscard]] bool is_running(ThreadId id) const;
  /// Descriptor that becomes readable when pump() has work to do.
  [[nodiscard]] int event_fd() const { return wake_ups_.fd(); }

  // Reported events and signals. Signals are Linux numbers.
  /// Signals that the program gets without an event.
  void set_pass_signals(std::set<int> signals) { settings_.pass_signals = std::move(signals); }
  [[nodiscard]] const std::set<int>& pass_signals() const { return settings_.pass_signals; }
  /// Signals that the program may still get when the client detaches.
  void set_program_signals(std::set<int> signals) {
    settings_.program_signals = std::move(signals);
  }
  void set_reported(const ReportedEvents& events) { settings_.reported = events; }
  [[nodiscard]] const ReportedEvents& reported() const { return settings_.reported; }
  /// Sets ReportedEvents::threads. Switching it off also drops thread events that were not handed
  /// out yet: a client that stops listening lists the threads itself.
  void report_threads(bool on);
  /// `handler` is called first for stops of tasks that the engine does not know or has forgotten;
  /// it returns true if it handled the stop.
  void set_on_stranger(std::function<bool(pid_t, const WaitStatus&)> handler) {
    on_stranger_ = std::move(handler);
  }
  /// `handler` is called for a thread that is recorded from now on although the client has not
  /// asked for it.
  void set_on_recorded_unasked(std::function<void(Thread&)> handler) {
    on_recorded_unasked_ = std::move(handler);
  }
  /// Processes launched or attached to from now on are recorded at once, so that a client that asks
  /// later also gets the past. Format kBts; the client chooses the final form.
  void set_from_start(const TraceConfig& config) { from_start_ = config; }

  // Breakpoints. Errors as Target's (kBusy, kUnreadable, kNotFound, kUnsupported).
  Result<void> insert(pid_t pid, BreakpointSpec spec);
  Result<void> remove(pid_t pid, const BreakpointSpec& spec);

  // Branch tracing.
  Result<void> enable_trace(ThreadId id, const TraceConfig& config);
  Result<void> disable_trace(ThreadId id);
  /// Keeps every record for the consumers of the thread's trace from now on (BranchSource::stream).
  /// Errors kNotEnabled, kNotFound, and the source's.
  Result<void> stream_trace(ThreadId id);
  /// Tells the consumers of the thread's trace when it gets and leaves a CPU. Errors kNotEnabled,
  /// kNotFound, and the kernel's.
  Result<void> mark_switches(ThreadId id);
  /// Passes the kernel's branches to the store of the thread's trace from now on. Errors
  /// kNotEnabled, kNotFound, and the source's.
  Result<void> see_kernel(ThreadId id);
  [[nodiscard]] SourceKind source() const { return source_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// Limit for threads that stop, or end a step, when they get a CPU.
  static constexpr std::chrono::milliseconds kStarvedLimit{60'000};

  // engine_events.cpp: interprets wait statuses.
  bool wait_one(pid_t tid = -1);
  void handle(pid_t tid, const WaitStatus& status);
  void handle_stop(Thread& thread, const WaitStatus& status);
  void handle_event_stop(Thread& thread);
  void let_fault_come(Thread& thread);
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
  void note_short_stop(Thread& thread);
  void post(Thread& thread, StopEvent event);

  // engine_births.cpp: threads, processes and programs that begin.
  void handle_first_stop(Thread& thread);
  void handle_new_task(Thread& parent);
  void add_clone(Thread& parent, pid_t tid, pid_t group);
  void handle_fork(Thread& parent, pid_t child_pid, bool shares);
  void lift_for_vfork(Process& process);
  void handle_vfork_done(Thread& thread);
  void handle_exec(Thread& thread);
  Result<Process*> await_child(Thread& parent, pid_t child_pid);
  Result<Process*> adopt_child(Thread& parent, pid_t child_pid);
  void let_child_go(pid_t child_pid, const Error& why);
  void release_child(Process& child);
  std::vector<UnclaimedTasks::Orphan> take_orphans(const Thread* ended);
  void let_orphan_go(const UnclaimedTasks::Orphan& orphan, Thread* maker);
  void let_orphans_go();
  void settle_orphans_of(Thread& ended);

  // engine_ends.cpp: threads and processes that end.
  void handle_end(Thread& thread, const WaitStatus& status);
  void forget_birth_of(pid_t child);
  void kill_unannounced_children(const Process& process);
  Result<void> send_kill(const Process& process);
  [[nodiscard]] Process* unannounced_child(const Thread& thread) const;
  void settle_unannounced_child(Thread& thread);
  bool look_at_leaders();
  bool bury_zombie_leaders();
  void bury(Thread& leader);
  void let_clone_go(Thread& thread);
  void let_clones_go(Process& process);
  Thread* running_clone(Process& process);

  // engine_run.cpp: resumes and stops threads.
  void go(Thread& thread);
  void set_going(Thread& thread);
  bool hide_affinity(Thread& thread, bool step);
  void resume_order(Thread& thread, const ResumeAction& action);
  void leave_call(Thread& thread);
  Thread* interruptible();
  static bool take_ctrl_c(Thread& thread);
  void drop_stale_ctrl_c();
  void drop_stale_event(Thread& thread, const ResumeAction& action);
  void ask_to_stop(Thread& thread);
  void stop_threads(const std::function<bool(const Thread&)>& which);
  void let_go_on(pid_t pid, pid_t except = 0);
  void let_all_go_on();
  void report_exits_of_others(ThreadId id, bool on);
  bool wait_until(const std::function<bool()>& done, std::chrono::milliseconds limit);
  void ask_again();
  void stop_who_is_due();
  [[nodiscard]] std::chrono::milliseconds wait_slice() const;
  void note_due(Thread& thread);
  [[nodiscard]] bool executes_in_software() const;
  /// Polls for requests and stops of threads for as long as that is likely to pay. Returns true at
  /// the first one.
  bool serve_asking();
  /// Waits for each running thread separately, once in as many handled stops as there are threads.
  /// `handled` is the number of stops just handled.
  void ask_each(int handled);
  /// Yields to the thread that shares the calling thread's CPU. Returns true if a stop was handled
  /// afterwards.
  bool wait_in_turn();

  // engine_step_over.cpp: steps over breakpoints whose conditions are false.
  bool do_step_overs();
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
  /// Ends the traces of the other threads if the last thread that the client asked for has ended.
  void end_trace_beside(Thread& thread);
  Result<void> hand_over_trace(ThreadId id, const TraceConfig& config);
  /// Calls `action` for each thread; those that run are stopped meanwhile.
  void each_stopped(const std::vector<ThreadId>& ids, const std::function<void(Thread&)>& action);

  // engine.cpp
  void forget_thread(Thread& thread);
  void forget_process(pid_t pid);
  void take_terminal_back();
  Result<void> seize_tasks(Process& process);
  Result<void> detach_all(pid_t pid, pid_t last, const std::function<void()>& before_last = {});
  void detach_one(Thread& thread);
  void end_trace(Thread& thread);
  void let_leave(Thread& thread);
  [[nodiscard]] int detach_signal(Thread& thread) const;

  SourceKind source_;
  ChildSignal child_signal_;
  WakeUps wake_ups_{child_signal_.fd()};
  EngineSettings settings_;
  TaskTable tasks_;
  PendingEvents events_{tasks_, settings_};
  BreakpointConditions conditions_;
  StepOverQueue step_over_queue_;
  std::function<bool(pid_t, const WaitStatus&)> on_stranger_;
  std::function<void(Thread&)> on_recorded_unasked_;
  std::optional<TraceConfig> from_start_;
  UnclaimedTasks unclaimed_;
  LeftBreakpoints left_breakpoints_;
  std::set<pid_t> let_go_;
  std::set<pid_t> loose_;  ///< Threads that are detached from at their next stop.
  /// Processes that were detached from, except for threads that wait for their vfork children.
  std::set<pid_t> leaving_;
  SpareCpu spare_cpu_;
  StopCpu stop_cpu_;
  /// Threads whose requested stop waits until the signal that an instruction raised has come, with
  /// the time since when.
  std::map<pid_t, Clock::time_point> faults_awaited_;
  std::set<pid_t> due_;  ///< Threads that may have to be stopped at a time that their source knows.
  std::set<pid_t> asking_;  ///< Threads that may post requests without stopping.
  /// Process group that gets the terminal back when no process is left to debug.
  std::optional<pid_t> terminal_owner_;
  Clock::time_point leaders_seen_{};     ///< When look_at_leaders() last looked.
  std::size_t handled_since_asked_ = 0;  ///< Stops handled since ask_each() last asked every
                                         ///< thread.
  bool interrupt_due_ = false;  ///< A Ctrl-C has not been reported yet, and no thread is asked.
};

}  // namespace backtrail::tracee
