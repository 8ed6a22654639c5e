// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/call_facts.hpp"

#include <utility>

#include <sys/syscall.h>

#include "arch/cpu/syscall_abi.hpp"
#include "arch/cpu/values.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
using arch::cpu::kSyscallInputs;

std::vector<decoder::ValueFact> CallFacts::begin(const arch::cpu::UserRegs& regs) {
  std::vector<decoder::ValueFact> out;
  out.reserve(kSyscallInputs.size() + 1);
  for (const auto& [reg, encoding] : kSyscallInputs) {
    out.push_back({.pc = regs.pc(), .value = regs[reg], .kind = encoding});
  }
  // By it the signal's frame is known.
  if (arch::cpu::syscall_number(regs) == SYS_rt_sigreturn) {
    out.push_back({.pc = regs.pc(),
                   .value = regs.sp().value(),
                   .kind = static_cast<arch::ValueKind>(arch::cpu::values::kRsp)});
  }
  returns_to_ = regs.pc() + arch::cpu::kSyscallInsnBytes;
  return out;
}

std::vector<decoder::ValueFact> CallFacts::end(Thread& thread) {
  const auto returns_to = std::exchange(returns_to_, std::nullopt);
  if (!returns_to || thread.status().kind != WaitKind::kStopped) return {};
  const auto regs = thread.user_regs();
  if (!regs || regs->pc() != *returns_to || thread.syscall_will_restart()) return {};
  // The result comes in the number's register.
  static_assert(arch::cpu::kSyscallResult == kSyscallInputs.front().reg);
  return {{.pc = *returns_to,
           .value = arch::cpu::syscall_result(*regs),
           .kind = kSyscallInputs.front().encoding}};
}

}  // namespace backtrail::tracee::cache
