// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The program's action for SIGSEGV, which a full log raises. If the program blocks or ignores the
/// signal, the kernel resets the action (force_sig_fault_to_task()); it is known here and restored.

#include <cstdint>

#include "arch/base/result.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/remote/trap_guard.hpp"

namespace backtrail::tracee {
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class SegvAction {
 public:
  explicit SegvAction(const KernelSigaction& action) : action_{action} {}

  /// Call when the program may have changed the action.
  void changed() { current_ = false; }
  /// Reads the action if it may have changed. `memory` is the thread's part.
  Result<void> learn(Thread& thread, const ThreadMemory& memory);
  /// Restores action and signal mask, given the mask before the signal.
  Result<void> repair(Thread& thread, const ThreadMemory& memory, std::uint64_t mask) const;

 private:
  KernelSigaction action_;
  bool current_ = true;
};

}  // namespace backtrail::tracee::cache
