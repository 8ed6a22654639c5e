#pragma once
/// @file
/// One traced thread: its ptrace stop, its registers, and what the engine wants of it.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/x86/debug_registers.hpp"
#include "arch/x86/raw_registers.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/tracee/resume_action.hpp"
#include "ptrace/tracee/stop_event.hpp"
#include "ptrace/tracee/thread_id.hpp"
#include "ptrace/tracee/trap_flag.hpp"

namespace backtrail::tracee {

class BranchSource;
class Process;
class ThreadTrace;

enum class RunRequest : std::uint8_t { kContinue, kStep, kSyscall };

/// Why a SIGTRAP stop happened.
enum class TrapCause : std::uint8_t {
  kBreakpointInsn,  ///< An int3 was executed; pc is behind it.
  kStep,            ///< A single step is done (also behind a system call).
  kHandlerEntry,    ///< Stepping with a signal: its frame is laid down, pc is the handler's first.
  kHardware,        ///< A debug register fired.
  kOther,           ///< Somebody sent the signal.
};

/// The engine's notes about a thread. "Client" is the debugger.
struct ThreadControl {
  bool resumed = false;              ///< The client wants it to run.
  ResumeAction action;               ///< How, while resumed.
  std::optional<StopEvent> pending;  ///< Happened, not yet handed to the client.
  std::uint64_t pending_order = 0;   ///< Pending events come out in this order.
  StopEvent last_stop;               ///< Handed out last.
  bool stop_known = false;           ///< The client was told of the present stop.
  bool stop_wanted = false;          ///< The engine asked it to stop and waits for that.
  bool client_stop = false;          ///< The client asked (kStop, Ctrl-C): report it.
  int client_stop_signal = 0;        ///< As this signal (SIGINT for Ctrl-C), 0 = kStopped.
  bool interrupt_pending = false;    ///< PTRACE_INTERRUPT sent, its stop not seen yet.
  bool starting = false;             ///< New; has not reported its first stop.
  std::uint64_t held_at_birth = 0;   ///< Signals to be unblocked at its first stop.
  bool vfork_parent = false;         ///< Sleeps in the kernel until its vfork child is done.
  bool zombie = false;               ///< A leader that ended before its threads.
  /// At a breakpoint there whose condition was false: the next instruction is stepped over.
  std::optional<TraceeAddr> step_over_at;
  bool queued = false;          ///< Waits for its turn to be stepped over that breakpoint.
  bool stepping_over = false;   ///< Single-steps over a lifted breakpoint; go() leaves it alone.
  bool group_stop_due = false;  ///< Left one for a fault: has to stop again behind it.
  int resume_signal = 0;        ///< Deliver with the next internal resume.
  /// A step that ends here has executed nothing: it began inside a system call.
  std::optional<TraceeAddr> no_progress_at;
  std::multiset<int> own_signals;  ///< Sent by us on the client's order: deliver unreported.
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
  [[nodiscard]] Process& process() { return process_; }
  [[nodiscard]] ThreadControl& control() { return control_; }
  [[nodiscard]] const ThreadControl& control() const { return control_; }
  /// Null if nothing records the thread. The room trace/ knows what it is.
  [[nodiscard]] std::shared_ptr<ThreadTrace>& trace() { return trace_; }
  /// The source of trace(); null if there is none.
  [[nodiscard]] BranchSource* source() { return source_; }
  /// Called by the trace when it begins and ends.
  void set_source(BranchSource* source) { source_ = source; }
  [[nodiscard]] TrapFlag& trap_flag() { return trap_flag_; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool stopped() const { return state_ == State::kStopped; }
  [[nodiscard]] bool stop_wanted() const { return control_.stop_wanted || control_.client_stop; }
  /// The wait status of the present stop.
  [[nodiscard]] const WaitStatus& status() const { return status_; }
  /// The kernel says that the thread has stopped.
  void note_stop(const WaitStatus& status);
  /// After exec: the thread that called it has the process's id now.
  void rename(pid_t tid);

  // All of these need a stopped thread (error kNotStopped); error kTraceeGone at any time.
  [[nodiscard]] Result<TraceeAddr> pc();
  Result<void> set_pc(TraceeAddr pc);
  [[nodiscard]] Result<arch::x86::UserRegs> user_regs();
  Result<void> set_user_regs(const arch::x86::UserRegs& regs);
  [[nodiscard]] Result<arch::x86::RawRegisters> registers();
  Result<void> set_registers(const arch::x86::RawRegisters& registers);
  /// Meaningful while stopped by SIGTRAP.
  [[nodiscard]] TrapCause trap_cause();
  /// DR6 as the present stop found it.
  [[nodiscard]] std::uint64_t debug_status();
  /// Instruction breakpoints of the recorder's own, in the debug registers that the debugger
  /// leaves; in force from the next run() on, until others take their place. How many found a
  /// register.
  std::size_t set_own_breakpoints(std::span<const TraceeAddr> addresses);
  /// Stopped at a system call's entry (and not its exit), or in the middle of it.
  [[nodiscard]] bool in_syscall() const { return in_syscall_; }
  /// The system call before pc was interrupted and the kernel will make it again.
  [[nodiscard]] bool syscall_will_restart();
  /// Where it goes on: at pc, or at the system call before it that will be made again.
  [[nodiscard]] Result<TraceeAddr> next_pc();
  /// An instruction has raised a signal that is not delivered yet: a stop that was asked for may
  /// come before it (get_signal() in kernel/signal.c). Set going, the thread stops with it at once.
  [[nodiscard]] bool fault_pending() const;
  /// A signal given to run() is delivered; in any other stop it would be dropped.
  [[nodiscard]] bool at_signal_delivery() const;

  /// Sets it going natively. `signal` only at_signal_delivery().
  Result<void> run(RunRequest request, int signal);
  /// As it was set going last, and with no signal: on to what it had begun.
  Result<void> run_on();
  /// Leaves it in its group stop (PTRACE_LISTEN) until SIGCONT or interrupt(); run_on() is as
  /// before. Further error: EIO where the stop is another.
  Result<void> stay_stopped();
  /// Asks a running thread to stop (PTRACE_INTERRUPT).
  Result<void> interrupt();

 private:
  Result<void> sync_debug_registers();

  Process& process_;
  pid_t tid_;
  State state_ = State::kRunning;
  RunRequest last_run_ = RunRequest::kContinue;
  WaitStatus status_;
  bool in_syscall_ = false;
  std::optional<arch::x86::UserRegs> regs_;
  std::optional<TrapCause> cause_;
  std::optional<std::uint64_t> debug_status_;
  std::uint64_t debug_generation_ = 0;
  /// The process's debug registers with the recorder's own breakpoints.
  std::optional<arch::x86::DebugRegisters> own_debug_;
  bool own_debug_changed_ = false;
  TrapFlag trap_flag_;
  ThreadControl control_;
  BranchSource* source_ = nullptr;
  std::shared_ptr<ThreadTrace> trace_;  ///< Shared so that its type may stay opaque here.
};

}  // namespace backtrail::tracee
