// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Removes the recorder's memory from a program whose address space is limited, when it wants more,
/// or that wants to have something else there.

#include <optional>
#include <utility>

#include "arch/cpu/registers.hpp"
#include "ptrace/codecache/recorder/disable_space.hpp"
#include "ptrace/codecache/recorder/limited_wait.hpp"
#include "ptrace/os/wait_status.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CacheSpace;

/// Where the limit on address space counts the recorder's memory, a request of the program for
/// memory may be refused only because of that. is_wanted() notices this and disables translated
/// code; has_to_wait() removes the memory once no thread is inside; the request is then repeated.
/// It also removes memory that was given up (CacheSpace::give_up_memory()).
class MemoryRemoval {
 public:
  MemoryRemoval(Process& process, DisableSpace disable)
      : process_{process}, disable_{std::move(disable)} {}

  /// Call before the thread makes a system call with `regs`, which may be a request for memory.
  void begin(const arch::cpu::UserRegs& regs);
  /// Call at the next stop. Returns true if the recorder's memory may be why a request for memory
  /// was refused, by a system call or as the stack was to grow: resume the thread, which repeats
  /// the call or the access.
  [[nodiscard]] bool is_wanted(Thread& thread, const WaitStatus& status);
  /// Call before the thread runs on natively: removes the memory if it is to be removed. Returns
  /// true if other threads must leave translated code first.
  [[nodiscard]] bool has_to_wait(Thread& thread);
  void forget() { call_.reset(); }

 private:
  Process& process_;
  DisableSpace disable_;
  std::optional<arch::cpu::UserRegs> call_;  ///< A call that may be refused for lack of memory.
  LimitedWait wait_;
};

/// Removes the recorder's memory, and undoes what that raised the limit on address space by. No
/// thread may be in translated code or enter it. Errors are logged.
void remove_memory(Thread& thread, CacheSpace& space);

/// Unmaps what the recorder had mapped for processes that shared the thread's memory and have ended
/// or executed another program (CodeWriters::left_memory()). The thread must be outside of
/// translated code. Does nothing if it cannot make calls at this stop, or a filter of the program
/// forbids munmap(). Errors are logged.
void remove_left_memory(Thread& thread);

}  // namespace backtrail::tracee::cache
