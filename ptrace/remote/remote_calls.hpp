#pragma once
/// @file
/// System calls made by a stopped thread on our behalf.

#include <array>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "arch/base/result.hpp"
#include "arch/x86/raw_registers.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/remote/call_batch.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

/// Borrows a stopped thread for system calls; gives its registers and signal mask back when it
/// ends. Signals that come meanwhile stay pending. Nothing is written to the program's memory: the
/// calls are made from a SYSCALL instruction that it has anyway.
class RemoteCalls {
 public:
  /// The thread must be in a stop outside system calls, which may be a signal's delivery, and is
  /// back there afterwards; or in that of a fork, clone or exec, which is done then. Errors:
  /// kTraceeGone, kUnsupported (no SYSCALL instruction was found), kBusy (of other stops inside a
  /// call), those of ptrace.
  static Result<RemoteCalls> begin(Thread& thread);
  RemoteCalls(RemoteCalls&& other) noexcept;
  RemoteCalls& operator=(RemoteCalls&&) = delete;
  RemoteCalls(const RemoteCalls&) = delete;
  RemoteCalls& operator=(const RemoteCalls&) = delete;
  ~RemoteCalls();

  /// The value the call returned. Errors: the errno it failed with; kTraceeGone; kUnsupported (the
  /// program's own seccomp filters do not let it pass: it was not made).
  Result<std::uint64_t> call(std::uint64_t number, std::initializer_list<std::uint64_t> arguments);
  /// Runs a CallBatch's code, which lies in the program, from its beginning to its end; behind
  /// filters of the program's own it makes its calls one by one.
  /// Errors: kUnsupported (a call failed, or was not made, as for call()), kBusy, kTraceeGone.
  Result<void> run(const CallBatch::Code& code);

 private:
  RemoteCalls(Thread& thread, TraceeAddr syscall_at, const arch::x86::UserRegs& saved,
              std::uint64_t mask);
  /// Whether the program's own filters do.
  [[nodiscard]] Result<void> let_pass(const seccomp_data& call) const;
  Result<std::uint64_t> make(const seccomp_data& call);
  Result<void> make_each(const CallBatch::Code& code);
  Result<void> run_to_syscall_stop();
  Result<void> stop_for_signal_again();
  Result<void> unblock_trap();
  bool note_other_stop(const WaitStatus& status);
  void send_again();

  Thread* thread_;
  TraceeAddr syscall_at_;
  arch::x86::UserRegs saved_;
  std::uint64_t mask_;
  std::optional<siginfo_t> signal_;  ///< Was about to be delivered.
  bool interrupted_ = false;
  bool stop_again_ = false;  ///< Somebody's SIGSTOP came meanwhile.
  bool trap_again_ = false;  ///< Somebody's SIGTRAP, likewise.
};

/// The next stop of a thread that has just been resumed and stops soon. Ends of threads are left
/// for the engine to see. Errors: kTraceeGone, kBusy (it does not stop).
Result<WaitStatus> next_stop(pid_t tid);

/// One of the sets in /proc/TID/status, by its name there; empty for a thread that is gone.
std::uint64_t signal_set(pid_t tid, std::string_view name);

/// Where the process has a SYSCALL instruction in executable memory. Error kUnsupported.
Result<TraceeAddr> find_syscall_insn(Process& process);

}  // namespace backtrail::tracee
