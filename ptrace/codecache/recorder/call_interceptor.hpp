// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls that a recorded thread makes natively and that concern the recorder: what must be
/// done before and after each of them.

#include <cstdint>
#include <optional>

#include <sys/types.h>

#include "arch/cpu/registers.hpp"
#include "ptrace/codecache/recorder/changed_call.hpp"
#include "ptrace/codecache/recorder/disable_space.hpp"
#include "ptrace/codecache/recorder/filter_calls.hpp"
#include "ptrace/codecache/recorder/limit_calls.hpp"
#include "ptrace/codecache/recorder/memory_removal.hpp"
#include "ptrace/codecache/recorder/own_memory_calls.hpp"
#include "ptrace/codecache/recorder/tracing_calls.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/os/wait_status.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
struct SourceResume;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class ThreadMemory;

/// Follows one thread through its calls. For every instruction that it executes natively:
///
///     prepare() -- kWait, kRequest: the thread stops again before it executes the instruction
///        | kGo
///     begin()   -- if it is a system call
///        |
///     has_to_wait() -- true: begin() is undone, and the thread stops again before the call
///        | false
///     the thread runs, to its next stop
///        |
///     end(), then takes_request() and repeats()
///
/// A call that waits in the kernel may stop more than once: end() completes it when it has
/// returned.
class CallInterceptor {
 public:
  /// @param keeps_translations the process has a persistent cache
  /// @param disable called with a process that has a space
  CallInterceptor(Process& process, bool keeps_translations, const DisableSpace& disable);

  enum class Next : std::uint8_t {
    kGo,
    kGoElsewhere,  ///< As kGo; but the thread is at another pc now, after a call that was made for
                   ///< it.
    kWait,         ///< Other threads must leave translated code before this one goes on.
    kRequest,      ///< The thread must stop so that another process can trace: takes_request().
  };
  /// Call before the thread executes an instruction natively, or a signal is delivered to it.
  Next prepare(Thread& thread, const SourceResume& how);
  /// Call after prepare() if the next instruction is a system call; `regs` are the thread's. The
  /// thread may have other registers afterwards, until end().
  /// @param memory the thread's part of the recorder's memory; null if it has none
  void begin(Thread& thread, const arch::cpu::UserRegs& regs, const SourceResume& how,
             const ThreadMemory* memory);
  /// As begin(), for a call of another form than SYSCALL (is_call_of_other_form()): the call may
  /// do anything to any mapping.
  void begin_other_form(Thread& thread);
  /// Call after begin(). Returns true if other threads must leave translated code first; what was
  /// begun is then undone.
  [[nodiscard]] bool has_to_wait(Thread& thread, const SourceResume& how);
  /// Call at the next stop.
  void end(Thread& thread);
  /// Call after end(). Returns true if this is the stop of Next::kRequest.
  [[nodiscard]] bool takes_request(const WaitStatus& status);
  /// Call after end(). Returns true if the thread must be resumed at once, because it repeats a
  /// call or an access that was refused for lack of memory.
  [[nodiscard]] bool repeats(Thread& thread, const WaitStatus& status);
  /// Returns the thread that another process wants to trace, by the server's id; 0: none.
  [[nodiscard]] pid_t trace_request() const { return tracing_.request(); }

  /// Call after an exec: the calls in progress were the old program's.
  void forget();
  /// Call when the thread is not recorded any more: other threads need not wait for it.
  void release() { filter_.release(); }

 private:
  void begin_effect(SyscallEffect effect, const arch::cpu::UserRegs& regs);
  /// Tells all who use the memory.
  void change_mappings(const MappingChange& change);

  Process& process_;
  bool keeps_translations_;
  DisableSpace disable_;
  ChangedCall changed_;
  FilterCalls filter_;
  LimitCalls limit_;
  MemoryRemoval removal_;
  OwnMemoryCalls own_memory_;
  TracingCalls tracing_;
  std::optional<MappingChange> mappings_;  ///< Change by the call that was begun.
};

}  // namespace backtrail::tracee::cache
