// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One traced thread: its ptrace stop, its registers, and the engine's state for it.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/cpu/debug_registers.hpp"
#include "arch/cpu/registers.hpp"
#include "ptrace/os/cpu_pin.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/tracee/resume_action.hpp"
#include "ptrace/tracee/stop_event.hpp"
#include "ptrace/tracee/thread_id.hpp"
#include "ptrace/tracee/thread_options.hpp"
#include "ptrace/tracee/trap_flag.hpp"

namespace backtrail::tracee {

class BranchSource;
class Process;
class ThreadTrace;

enum class RunRequest : std::uint8_t { kContinue, kStep, kSyscall };

/// Why a SIGTRAP stop happened.
enum class TrapCause : std::uint8_t {
  kBreakpointInsn,  ///< An int3 was executed; pc is after it.
  kStep,            ///< A single step is done, possibly over a system call.
  kHandlerEntry,    ///< A signal was delivered while stepping: its frame is built, and pc is at the
                    ///< handler's first instruction.
  kHardware,        ///< A debug register fired.
  kOther,           ///< A process sent the signal.
};

/// The engine's state for a thread. "Client" is the debugger.
struct ThreadControl {
  bool resumed = false;              ///< The client wants it to run.
  ResumeAction action;               ///< How, while resumed.
  std::optional<StopEvent> pending;  ///< Happened, but not yet handed to the client.
  std::uint64_t pending_order = 0;   ///< Order in which pending events are handed out.
  StopEvent last_stop;               ///< The event handed out last.
  bool stop_known = false;           ///< The client knows of the present stop.
  bool stop_wanted = false;          ///< The engine asked it to stop and waits for that.
  bool client_stop = false;    ///< The client asked it to stop (kStop, Ctrl-C): report that stop.
  int client_stop_signal = 0;  ///< Signal to report it as (SIGINT for Ctrl-C); 0 = kStopped.
  bool interrupt_pending = false;   ///< PTRACE_INTERRUPT was sent; its stop has not been seen yet.
  ThreadOptions options{};          ///< Events that the client wants of it.
  bool told_by_maker = false;       ///< New; an event of the thread that made it reports it.
  bool untold = false;              ///< New; that event has not been handed to the client.
  bool starting = false;            ///< New; its first stop has not been seen yet.
  std::uint64_t held_at_birth = 0;  ///< Signals to unblock at its first stop.
  bool vfork_parent = false;  ///< Sleeps in the kernel until its vfork child has exec'd or ended.
  bool vfork_told = false;    ///< The client knows of that vfork, and wants to know of its end.
  bool zombie = false;        ///< A leader that ended before its other threads.
  /// Address of a breakpoint whose condition was false; the thread must be stepped over it.
  std::optional<TraceeAddr> step_over_at;
  bool queued = false;         ///< Waits for its turn to be stepped over that breakpoint.
  bool stepping_over = false;  ///< Is being stepped over a lifted breakpoint; go() leaves it alone.
  bool group_stop_due = false;  ///< Left a group stop because of a fault, and must return to it
                                ///< afterwards.
  int resume_signal = 0;        ///< Signal to deliver at the next internal resume.
  /// A step that ends at this pc has executed no instruction, because it began inside a system
  /// call.
  std::optional<TraceeAddr> no_progress_at;
  std::multiset<int> own_signals;  ///< Signals sent by the server on the client's order; to be
                                   ///< delivered unreported.
};

class Thread {
 public:
  enum class State : std::uint8_t { kStopped, kRunning, kListening };

  Thread(Process& process, pid_t tid);
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  [[nodiscard]] ThreadId id() const;
  [[nodiscard]] pid_t tid() const { return tid_; }
  /// The kernel's id of the process that the thread belongs to. It differs from id().pid for a
  /// process made by clone() that shares the memory: debuggers see its threads as threads of the
  /// process that made it.
  [[nodiscard]] pid_t group() const;
  void set_group(pid_t group) { group_ = group; }
  /// Sends the thread a signal (tgkill). It is lost if the thread has ended. Returns 0 or the
  /// errno, as only few callers can do anything about it.
  int send(int signal) const;
  /// Sends the stopped thread a signal that it has already got, or had to wait for. Not if it has
  /// been killed meanwhile: when another thread executes a program, that program has its id.
  int send_again(int signal) const;
  [[nodiscard]] Process& process() { return process_; }
  [[nodiscard]] ThreadControl& control() { return control_; }
  [[nodiscard]] const ThreadControl& control() const { return control_; }
  /// Null if the thread is not recorded. The type is ptrace/trace's, and opaque in this folder.
  [[nodiscard]] std::shared_ptr<ThreadTrace>& trace() { return trace_; }
  /// The source of trace(); null if there is none.
  [[nodiscard]] BranchSource* source() { return source_; }
  /// Called by the trace when its source begins, and with null when the trace is destroyed.
  void set_source(BranchSource* source) { source_ = source; }
  [[nodiscard]] TrapFlag& trap_flag() { return trap_flag_; }
  /// Never null. While it is active the kernel shows and hands down an affinity that is not the
  /// program's own.
  [[nodiscard]] const std::shared_ptr<CpuPin>& cpu_pin() const { return cpu_pin_; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool stopped() const { return state_ == State::kStopped; }
  [[nodiscard]] bool stop_wanted() const { return control_.stop_wanted || control_.client_stop; }
  /// The wait status of the present stop.
  [[nodiscard]] const WaitStatus& status() const { return status_; }
  /// Records that the kernel reported a stop.
  void note_stop(const WaitStatus& status);
  /// Sets the id after an exec: the thread that called it now has the process's id.
  void rename(pid_t tid);

  // The following require a stopped thread (error kNotStopped); error kTraceeGone is always
  // possible.
  [[nodiscard]] Result<TraceeAddr> pc();
  Result<void> set_pc(TraceeAddr pc);
  [[nodiscard]] Result<arch::cpu::UserRegs> user_regs();
  Result<void> set_user_regs(const arch::cpu::UserRegs& regs);
  [[nodiscard]] Result<arch::cpu::RawRegisters> registers();
  Result<void> set_registers(const arch::cpu::RawRegisters& registers);
  /// Returns true if set_registers() has changed pc since the stop.
  [[nodiscard]] bool moved() const { return moved_; }
  /// Cause of a SIGTRAP stop. Meaningful only in such a stop.
  [[nodiscard]] TrapCause trap_cause();
  /// DR6 at the present stop.
  [[nodiscard]] std::uint64_t debug_status();
  /// Sets the recorder's own instruction breakpoints, in debug registers that the debugger does not
  /// use. They take effect at the next run() and replace the former ones. Returns how many got a
  /// register.
  std::size_t set_own_breakpoints(std::span<const TraceeAddr> addresses);
  /// Returns true if the thread is stopped at a system call's entry or in the middle of the call,
  /// not at its exit.
  [[nodiscard]] bool in_syscall() const { return in_syscall_; }
  /// Returns true if the system call before pc was interrupted and the kernel will repeat it.
  [[nodiscard]] bool syscall_will_restart();
  /// Returns the pc at which the thread continues: pc, or the system call before it if that is
  /// repeated.
  [[nodiscard]] Result<TraceeAddr> next_pc();
  /// Returns true if an instruction has raised a signal that is not delivered yet: a requested stop
  /// may come before it (get_signal() in kernel/signal.c). When resumed, the thread stops with that
  /// signal at once.
  [[nodiscard]] bool fault_pending() const;
  /// Returns true if the kernel has taken the stopped thread out of its stop to end it, because of
  /// a SIGKILL or another thread's exec. The stop then has no consequence. The thread may be at its
  /// PTRACE_EVENT_EXIT already, which has not been noted: it answers requests there.
  [[nodiscard]] bool is_gone() const;
  /// Returns true if the program that another thread executes has taken the stopped thread's id and
  /// is at its PTRACE_EVENT_EXEC, which has not been noted. Only kernels before 5.13 let it be
  /// asked then; for others the thread is gone (looks_like_a_spurious_pid() in kernel/ptrace.c).
  [[nodiscard]] bool is_replaced() const;
  /// Returns true if run() can deliver a signal from this stop; in any other stop the signal would
  /// be dropped.
  [[nodiscard]] bool at_signal_delivery() const;

  /// Resumes the thread natively. `signal` may be nonzero only if at_signal_delivery().
  Result<void> run(RunRequest request, int signal);
  /// Resumes the thread as run() last did, without a signal, so that it completes what it began.
  Result<void> run_on();
  /// Leaves the thread in its group stop (PTRACE_LISTEN) until SIGCONT or interrupt(). Does not
  /// change what run_on() does. Further error: EIO if the stop is of another kind.
  Result<void> stay_stopped();
  /// Asks a running thread to stop (PTRACE_INTERRUPT).
  Result<void> interrupt();

 private:
  Result<void> sync_debug_registers();
  void set_state(State state);

  Process& process_;
  pid_t tid_;
  pid_t group_ = 0;  ///< 0 = process_.pid().
  State state_ = State::kRunning;
  RunRequest last_run_ = RunRequest::kContinue;
  WaitStatus status_;
  bool in_syscall_ = false;
  bool moved_ = false;
  std::optional<arch::cpu::UserRegs> regs_;
  std::optional<TrapCause> cause_;
  std::optional<std::uint64_t> debug_status_;
  std::uint64_t debug_generation_ = 0;
  /// The process's debug registers combined with the recorder's own breakpoints.
  std::optional<arch::cpu::DebugRegisters> own_debug_;
  bool own_debug_changed_ = false;
  TrapFlag trap_flag_;
  std::shared_ptr<CpuPin> cpu_pin_;
  ThreadControl control_;
  BranchSource* source_ = nullptr;
  std::shared_ptr<ThreadTrace> trace_;  ///< Shared so that its type may remain opaque here.
};

}  // namespace backtrail::tracee
