// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Remote system calls: made by a stopped thread of the program for the server.

#include <array>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "arch/base/result.hpp"
#include "arch/cpu/registers.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/remote/call_batch.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

/// Borrows a stopped thread for system calls, and restores its registers and signal mask when done.
/// Signals that arrive meanwhile stay pending. The calls use a SYSCALL instruction that the program
/// contains, so nothing is written to its memory.
///
/// A thread that takes long to stop is waited for, because it cannot run on with the registers of a
/// call. If this process is asked to end meanwhile, it kills the thread's process and logs an
/// error.
class RemoteCalls {
 public:
  /// Requires a stop outside of system calls, which may be a signal's delivery; the thread is in
  /// that stop again afterwards. A stop of a fork, clone or exec is allowed, too; the call is
  /// complete afterwards. Errors: kTraceeGone, kUnsupported (no SYSCALL instruction found), kBusy
  /// (any other stop inside a call), those of ptrace.
  static Result<RemoteCalls> begin(Thread& thread);
  RemoteCalls(RemoteCalls&& other) noexcept;
  RemoteCalls& operator=(RemoteCalls&&) = delete;
  RemoteCalls(const RemoteCalls&) = delete;
  RemoteCalls& operator=(const RemoteCalls&) = delete;
  ~RemoteCalls();

  /// Makes a call and returns its result. Errors: the call's errno; kTraceeGone; kUnsupported (the
  /// program's own seccomp filters forbid the call, so it was not made).
  Result<std::uint64_t> call(std::uint64_t number, std::initializer_list<std::uint64_t> arguments);
  /// Like call(), with one stop instead of two where the program's action for SIGTRAP allows that.
  /// The kernel forces SIGTRAP, so do not use it before that action was looked at for the program.
  Result<std::uint64_t> stepped_call(std::uint64_t number,
                                     std::initializer_list<std::uint64_t> arguments);
  /// Runs a CallBatch's code, which lies in the program's memory. If the program has installed
  /// seccomp filters, makes the calls one by one instead. Errors: kUnsupported (a call failed, or
  /// was not made, as for call()), kBusy, kTraceeGone.
  Result<void> run(const CallBatch::Code& code);

 private:
  RemoteCalls(Thread& thread, TraceeAddr syscall_at, const arch::cpu::UserRegs& saved,
              std::uint64_t mask);
  /// Fails if the program's own seccomp filters forbid the call.
  [[nodiscard]] Result<void> let_pass(const seccomp_data& call) const;
  /// Where a call is waited for.
  enum class Stops : std::uint8_t { kBeginAndEnd, kEnd };
  Result<std::uint64_t> make(const seccomp_data& call, Stops stops = Stops::kBeginAndEnd);
  Result<void> make_each(const CallBatch::Code& code);
  Result<void> run_to_syscall_stop();
  /// Executes the instruction at `syscall_at_` in a single step.
  Result<void> step_over_syscall();
  /// Reads the siginfo of a trap that ends what the thread does here; notes if it was sent.
  Result<void> note_trap();
  /// Returns true if the kernel may force SIGTRAP with no change of the program's action.
  [[nodiscard]] bool may_step() const;
  Result<WaitStatus> wait();
  /// Fails once the thread has been lost.
  [[nodiscard]] Result<void> check_usable() const;
  bool may_restore();
  Result<void> stop_for_signal_again();
  Result<void> unblock_trap();
  bool note_other_stop(const WaitStatus& status);
  void send_again();

  Thread* thread_;
  TraceeAddr syscall_at_;
  arch::cpu::UserRegs saved_;
  std::uint64_t mask_;
  std::optional<siginfo_t> signal_;  ///< Signal that was about to be delivered.
  enum class Lost : std::uint8_t {
    kNo,
    kRuns,  ///< The thread has not stopped.
    kEnds,  ///< The thread has ended, or stands at its end or at another thread's exec.
  };
  Lost lost_ = Lost::kNo;
  bool interrupted_ = false;
  bool stop_again_ = false;  ///< A SIGSTOP arrived meanwhile and must be sent again.
  bool trap_again_ = false;  ///< A SIGTRAP arrived meanwhile and must be sent again.
  /// The thread is at the delivery of a trap that ended a batch or a step.
  bool at_trap_ = false;
};

/// Waits for the next stop of a thread that was just resumed and stops soon, for as long as it
/// takes; warns when that is long. Leaves the end of a thread, and an exec, for the engine to
/// collect. Errors: kTraceeGone (one of these); kBusy (it has not stopped for long, and a blocked
/// SIGTERM, SIGQUIT or SIGHUP waits for this process).
Result<WaitStatus> next_stop(pid_t tid);

/// Returns a signal set from /proc/TID/status, by its name there; empty if the thread is gone.
std::uint64_t signal_set(pid_t tid, std::string_view name);

/// Returns the address of a SYSCALL instruction in the process's executable memory. Error
/// kUnsupported.
Result<TraceeAddr> find_syscall_insn(Process& process);

}  // namespace backtrail::tracee
