// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls that set or return the limit on address space (RLIMIT_AS), which must not count the
/// recorder's memory.

#include <optional>

#include <sys/resource.h>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "ptrace/codecache/recorder/changed_call.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class ThreadMemory;

/// Follows one thread's call from begin() to end(). A limit that the program sets is raised by the
/// size of the recorder's memory; a limit that it reads is the one that it has set.
class LimitCalls {
 public:
  /// @param keeps_translations the process has a persistent cache, so that its mappings were moved
  explicit LimitCalls(Process& process, bool keeps_translations)
      : process_{process}, keeps_translations_{keeps_translations} {}

  /// Call before the thread makes a system call with `regs`; other calls have no effect. A new
  /// limit is raised by a call that `changed` makes other.
  /// @param memory the thread's part of the recorder's memory; null if it has none
  /// @param is_watched the debugger sees the call, which is therefore left as it is
  void begin(Thread& thread, const arch::cpu::UserRegs& regs, const ThreadMemory* memory,
             bool is_watched, ChangedCall& changed);
  /// Call at the next stop, after ChangedCall::end(). Does nothing if no call was begun or the
  /// thread is still in it.
  void end(Thread& thread);
  void forget() { call_.reset(); }

 private:
  struct Call {
    LimitCall is;
    TraceeAddr after;              ///< Address after the call's instruction.
    std::optional<rlimit> wanted;  ///< Limit that the program sets.
    std::optional<rlimit> given;   ///< Limit that is set instead.
  };
  [[nodiscard]] bool is_own_limit(const LimitCall& call, const ThreadMemory* memory) const;

  Process& process_;
  bool keeps_translations_;
  std::optional<Call> call_;
};

}  // namespace backtrail::tracee::cache
