// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells how far a thread has come with a system call.

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

/// Returns true if the thread, which is stopped with `regs`, has made the call that ends at
/// `after` and will not repeat it.
[[nodiscard]] inline bool has_made_call(Thread& thread, const arch::cpu::UserRegs& regs,
                                        TraceeAddr after) {
  return regs.pc() == after && !thread.in_syscall() && !thread.syscall_will_restart();
}

}  // namespace backtrail::tracee::cache
