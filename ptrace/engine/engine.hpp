// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All traced processes. The engine is the only code that waits for their threads, and decides when
/// they stop and run on.
///
/// Entry type: Engine, which knows nothing of packets. All calls must come from one thread, the
/// tracing thread, as ptrace(2) requires.

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/engine/attaching.hpp"
#include "ptrace/engine/births.hpp"
#include "ptrace/engine/breakpoint_conditions.hpp"
#include "ptrace/engine/cpu_sharing.hpp"
#include "ptrace/engine/ctrl_c.hpp"
#include "ptrace/engine/detaching.hpp"
#include "ptrace/engine/ends.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/event_pump.hpp"
#include "ptrace/engine/execs.hpp"
#include "ptrace/engine/killing.hpp"
#include "ptrace/engine/orphans.hpp"
#include "ptrace/engine/pending_events.hpp"
#include "ptrace/engine/recording.hpp"
#include "ptrace/engine/signal_stops.hpp"
#include "ptrace/engine/source_demands.hpp"
#include "ptrace/engine/step_over_queue.hpp"
#include "ptrace/engine/step_overs.hpp"
#include "ptrace/engine/stop_cpu.hpp"
#include "ptrace/engine/stop_handler.hpp"
#include "ptrace/engine/stopper.hpp"
#include "ptrace/engine/task_removal.hpp"
#include "ptrace/engine/task_table.hpp"
#include "ptrace/engine/thread_runner.hpp"
#include "ptrace/engine/untold_children.hpp"
#include "ptrace/engine/waiter.hpp"
#include "ptrace/engine/wake_ups.hpp"
#include "ptrace/engine/zombie_leaders.hpp"
#include "ptrace/os/child_signal.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/source/source_kind.hpp"
#include "ptrace/tracee/breakpoint.hpp"
#include "ptrace/tracee/launch_spec.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/resume_action.hpp"
#include "ptrace/tracee/stop_event.hpp"

namespace backtrail::tracee {

/// Runs, stops and records the threads of all traced processes, and reports their events. Owns the
/// parts that do it, and is what the rest of the program knows of them: see docs/stops.md, "The
/// parts".
class Engine {
 public:
  explicit Engine(SourceKind source);
  /// Kills launched processes and detaches from attached ones.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Processes. Errors: those of launch_process() and of ptrace(PTRACE_SEIZE).
  Result<pid_t> launch(const LaunchSpec& spec) { return attaching_.launch(spec); }
  /// Error kBusy if the server traces the process already.
  Result<pid_t> attach(pid_t pid) { return attaching_.attach(pid); }
  /// A thread that waits for its vfork child cannot stop now: it is let go when the child has ended
  /// or executed another program, during a later pump().
  Result<void> detach(pid_t pid) { return detaching_.detach(pid); }
  /// Detaches from a launched process, whose end is reported nevertheless. By the time `last` runs
  /// again no thread of the process is traced.
  /// @param before_last Called when all other threads have been let go and `last` has the state it
  /// will run on with.
  Result<void> let_go(ThreadId last, const std::function<void()>& before_last = {}) {
    return detaching_.let_go(last, before_last);
  }
  /// Kills the process and waits for its end, which is not reported. Errors: kNotFound, and
  /// kill(2)'s.
  Result<void> kill(pid_t pid) { return killing_.kill(pid); }
  /// Returns the processes that the client knows.
  [[nodiscard]] std::vector<Process*> processes() const { return state_.tasks.known(); }
  /// Returns the processes whose ends take_event() will still return. detach() and kill() of one
  /// succeed; then its end is not returned any more.
  [[nodiscard]] std::vector<const UntoldEnd*> untold_ends() const {
    return state_.events.untold_ends();
  }
  [[nodiscard]] Process* find(pid_t pid) const { return state_.tasks.find(pid); }
  [[nodiscard]] Thread* find(ThreadId id) const { return state_.tasks.find(id); }

  // Running and stopping.
  void set_non_stop(bool on) { state_.settings.non_stop = on; }
  /// Allows keeping the calling thread on one CPU with a thread that stops for signals all the time
  /// (StopCpu).
  /// The caller must create threads and processes only within calls that stop or launch something:
  /// others would inherit that one CPU. It must call pump() at least every few milliseconds while
  /// shares_cpu().
  void set_follows_signals(bool on) { state_.settings.follows_signals = on; }
  /// Returns true while the calling thread shares its CPU with such a thread.
  [[nodiscard]] bool shares_cpu() const { return state_.stop_cpu.narrows(); }
  /// Returns true if the next signal should come at once. pump() then yields the CPU before it
  /// returns without an event, so the caller may call it again without waiting.
  [[nodiscard]] bool runs_in_turns() const { return state_.stop_cpu.in_turns(); }
  Result<void> resume(std::span<const std::pair<ThreadId, ResumeAction>> orders);
  /// Handles the client's Ctrl-C: one running thread stops and reports SIGINT, whatever its signal
  /// mask. If none can now, or another event comes first, the next thread that runs on does.
  void interrupt() { runner_.interrupt(); }
  /// Forgets a Ctrl-C that has not been reported yet, as when another client comes.
  void forget_interrupt() { state_.ctrl_c.forget(); }
  /// Stops everything without an event.
  void stop_all() { stopper_.stop_all(); }
  /// Says whether the client knows that the stopped thread is stopped. If not, kStop reports it.
  void set_stop_known(ThreadId id, bool known);
  /// Calls `action` while no thread of the process runs; threads that ran are resumed afterwards.
  void while_stopped(pid_t pid, const std::function<void()>& action) {
    stopper_.while_stopped(pid, action);
  }
  /// Calls `action` while no thread of the process runs, then resumes the stopped thread with a
  /// signal that will end the process. The other threads stay stopped until the kernel ends them.
  /// If the process does not end, they are resumed a little later.
  void end_after(ThreadId id, int signal, const std::function<void()>& action) {
    killing_.end_after(id, signal, action);
  }
  /// Handles what has happened, without waiting. While threads are executed in software it
  /// continues until there is an event or `input_fd` is readable.
  void pump(int input_fd) { pump_.pump(input_fd); }
  /// Returns true if pump() has nothing to do before event_fd() is readable: nothing runs, and
  /// nothing is postponed.
  [[nodiscard]] bool rests();
  /// Returns the oldest event of a thread that the client resumed. In all-stop, everything is
  /// stopped then.
  std::optional<StopEvent> take_event();
  [[nodiscard]] bool running() const { return state_.tasks.any_running(); }
  [[nodiscard]] bool is_running(ThreadId id) const;
  /// Descriptor that becomes readable when pump() has work to do.
  [[nodiscard]] int event_fd() const { return wake_ups_.fd(); }

  // Reported events and signals. Signals are Linux numbers.
  /// Signals that the program gets without an event.
  void set_pass_signals(std::set<int> signals) {
    state_.settings.pass_signals = std::move(signals);
  }
  [[nodiscard]] const std::set<int>& pass_signals() const { return state_.settings.pass_signals; }
  /// Signals that the program may still get when the client detaches.
  void set_program_signals(std::set<int> signals) {
    state_.settings.program_signals = std::move(signals);
  }
  void set_reported(const ReportedEvents& events) { state_.settings.reported = events; }
  [[nodiscard]] const ReportedEvents& reported() const { return state_.settings.reported; }
  /// Sets ReportedEvents::threads. Switching it off also drops thread events that were not handed
  /// out yet: a client that stops listening lists the threads itself.
  void report_threads(bool on);
  /// No effect if the thread has ended.
  void set_options(ThreadId id, ThreadOptions options);
  /// Returns the threads that ended in all-stop while the client did not run them, and whose ends
  /// will be reported when it resumes them.
  [[nodiscard]] std::vector<ThreadId> held_ends() const { return state_.events.held_ends(); }
  /// Call before the client reads the list of threads. Finds leaders that ended unnoticed, and
  /// drops the ends that wait: the client sees that these threads are gone.
  void update_thread_list();
  /// `handler` is called first for stops of tasks that the engine does not know or has forgotten;
  /// it returns true if it handled the stop.
  void set_on_stranger(std::function<bool(pid_t, const WaitStatus&)> handler) {
    handler_.set_on_stranger(std::move(handler));
  }
  /// `handler` is called for a thread that is recorded from now on although the client has not
  /// asked for it.
  void set_on_recorded_unasked(std::function<void(Thread&)> handler) {
    recording_.set_on_unasked(std::move(handler));
  }
  /// Processes launched or attached to from now on are recorded at once, so that a client that asks
  /// later also gets the past. Format kBts; the client chooses the final form.
  void set_from_start(const TraceConfig& config) { recording_.set_from_start(config); }
  /// Like set_from_start(), and records every thread that is there. Errors: the source's, of a
  /// thread that cannot be recorded; the others are.
  Result<void> begin_history(const TraceConfig& config) { return recording_.begin_history(config); }
  /// Ends what set_from_start() or begin_history() began. Traces that the client asked for go on.
  void end_history() { recording_.end_history(); }
  /// Returns true between these calls.
  [[nodiscard]] bool keeps_history() const { return recording_.keeps_history(); }

  // Breakpoints. Errors as Target's (kBusy, kUnreadable, kNotFound, kUnsupported).
  Result<void> insert(pid_t pid, BreakpointSpec spec);
  Result<void> remove(pid_t pid, const BreakpointSpec& spec);

  // Branch tracing.
  /// Errors kNotFound, kAlreadyEnabled, kTraceeGone if the thread has ended meanwhile, and the
  /// source's.
  Result<void> enable_trace(ThreadId id, const TraceConfig& config) {
    return recording_.enable(id, config);
  }
  /// Errors kNotFound, kNotEnabled.
  Result<void> disable_trace(ThreadId id) { return recording_.disable(id); }
  /// Keeps every record for the consumers of the thread's trace from now on (BranchSource::stream).
  /// Errors kNotEnabled, kNotFound, and the source's.
  Result<void> stream_trace(ThreadId id) { return recording_.stream(id); }
  /// Tells the consumers of the thread's trace when it gets and leaves a CPU. Errors kNotEnabled,
  /// kNotFound, and the kernel's.
  Result<void> mark_switches(ThreadId id) { return recording_.mark_switches(id); }
  /// Passes the kernel's branches to the store of the thread's trace from now on. Errors
  /// kNotEnabled, kNotFound, and the source's.
  Result<void> see_kernel(ThreadId id) { return recording_.see_kernel(id); }
  [[nodiscard]] SourceKind source() const { return recording_.source(); }

 private:
  /// Data that the parts share. Nothing in it acts by itself.
  struct State {
    EngineSettings settings;
    TaskTable tasks;
    PendingEvents events{tasks, settings};
    BreakpointConditions conditions;
    StepOverQueue step_overs;
    SourceDemands demands{tasks};
    CtrlC ctrl_c{tasks};
    StopCpu stop_cpu;
  };

  // Each part knows only those before it, except that Waiter calls StopHandler through its
  // interface.
  ChildSignal child_signal_;
  WakeUps wake_ups_{child_signal_.fd()};
  State state_;
  CpuSharing cpu_sharing_{state_.settings, state_.stop_cpu, wake_ups_};
  ThreadRunner runner_{state_.tasks,      state_.events,  state_.ctrl_c,
                       state_.step_overs, state_.demands, cpu_sharing_};
  ZombieLeaders leaders_{state_.tasks, state_.events, runner_, wake_ups_};
  Waiter waiter_{state_.tasks, state_.demands, leaders_, child_signal_};
  Stopper stopper_{state_.tasks, waiter_, runner_, state_.stop_cpu};
  Recording recording_;
  TaskRemoval removal_{state_.tasks, state_.conditions, state_.ctrl_c, runner_};
  UntoldChildren children_{state_.tasks, removal_};
  Orphans orphans_{state_.tasks, children_};
  Detaching detaching_{state_.tasks, state_.settings, state_.events, stopper_, removal_, children_};
  Attaching attaching_{state_.tasks, state_.settings, state_.ctrl_c, state_.stop_cpu, waiter_,
                       stopper_,     recording_,      removal_,      detaching_};
  Killing killing_{state_.tasks, state_.settings, state_.events, state_.ctrl_c, runner_,
                   waiter_,      stopper_,        removal_,      children_};
  Births births_{state_.tasks, state_.settings, runner_, waiter_, recording_, children_, orphans_};
  Execs execs_{state_.tasks, state_.settings, state_.events, state_.conditions, runner_,
               waiter_,      removal_,        children_,     detaching_};
  Ends ends_{state_.tasks, state_.events, runner_,  state_.stop_cpu,
             removal_,     children_,     orphans_, detaching_};
  SignalStops signals_{state_.settings, state_.conditions, runner_, cpu_sharing_};
  StopHandler handler_{
      state_.tasks,    state_.settings, state_.demands,
      state_.stop_cpu, runner_,         waiter_,
      orphans_,        detaching_,      StopHandler::Kinds{births_, execs_, ends_, signals_}};
  StepOvers step_overs_{state_.tasks, state_.events, state_.step_overs, runner_, waiter_, stopper_};
  EventPump pump_{state_.tasks, state_.events, state_.demands, state_.stop_cpu, cpu_sharing_,
                  leaders_,     waiter_,       recording_,     orphans_,        step_overs_};
};

}  // namespace backtrail::tracee
