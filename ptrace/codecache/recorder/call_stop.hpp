// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells how far a thread has come with a system call.

#include <cstdint>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

/// Returns true if the thread, which is stopped with `regs`, has made the call that ends at
/// `after` and will not repeat it.
[[nodiscard]] inline bool has_made_call(Thread& thread, const arch::cpu::UserRegs& regs,
                                        TraceeAddr after) {
  return regs.pc() == after && !thread.in_syscall() && !thread.syscall_will_restart();
}

/// Returns the registers after a SYSCALL instruction with this result. `regs` are those before it.
[[nodiscard]] inline arch::cpu::UserRegs after_call(const arch::cpu::UserRegs& regs,
                                                    std::uint64_t result) {
  using arch::cpu::UserReg;
  arch::cpu::UserRegs after = regs;
  after[arch::cpu::kSyscallResult] = result;
  after[UserReg::kRip] += arch::cpu::kSyscallInsnBytes;
  after[UserReg::kRcx] = after[UserReg::kRip];
  after[UserReg::kR11] = regs[UserReg::kEflags];
  leave_syscall(after);
  return after;
}

}  // namespace backtrail::tracee::cache
