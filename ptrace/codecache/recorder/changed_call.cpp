// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/changed_call.hpp"

#include <utility>

#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

using arch::cpu::UserReg;

bool ChangedCall::begin(Thread& thread, const arch::cpu::UserRegs& program,
                        const arch::cpu::UserRegs& changed) {
  if (!thread.set_user_regs(changed)) return false;
  program_ = program;
  return true;
}

void ChangedCall::end(Thread& thread) {
  const auto program = std::exchange(program_, std::nullopt);
  if (!program) return;
  if (const auto now = thread.user_regs()) (void)thread.set_user_regs(restored(*program, *now));
}

arch::cpu::UserRegs ChangedCall::restored(const arch::cpu::UserRegs& program,
                                          arch::cpu::UserRegs now) {
  for (const UserReg argument : {UserReg::kRdi, UserReg::kRsi, UserReg::kRdx}) {
    now[argument] = program[argument];
  }
  // Elsewhere rax is the call's result.
  if (now.pc() == program.pc()) now[UserReg::kRax] = program[UserReg::kRax];
  return now;
}

}  // namespace backtrail::tracee::cache
