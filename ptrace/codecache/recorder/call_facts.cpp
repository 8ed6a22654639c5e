// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/call_facts.hpp"

#include <array>
#include <utility>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;

/// Registers and their encodings.
constexpr std::array<std::pair<UserReg, std::uint8_t>, 7> kArguments{{{UserReg::kRax, 0},
                                                                      {UserReg::kRdi, 7},
                                                                      {UserReg::kRsi, 6},
                                                                      {UserReg::kRdx, 2},
                                                                      {UserReg::kR10, 10},
                                                                      {UserReg::kR8, 8},
                                                                      {UserReg::kR9, 9}}};

}  // namespace

std::vector<decoder::ValueFact> CallFacts::begin(const arch::cpu::UserRegs& regs) {
  std::vector<decoder::ValueFact> out;
  out.reserve(kArguments.size());
  for (const auto& [reg, encoding] : kArguments) {
    out.push_back({.pc = regs.pc(), .value = regs[reg], .reg = encoding});
  }
  returns_to_ = regs.pc() + arch::cpu::kSyscallInsnBytes;
  return out;
}

std::vector<decoder::ValueFact> CallFacts::end(Thread& thread) {
  const auto returns_to = std::exchange(returns_to_, std::nullopt);
  if (!returns_to || thread.status().kind != WaitKind::kStopped) return {};
  const auto regs = thread.user_regs();
  if (!regs || regs->pc() != *returns_to || thread.syscall_will_restart()) return {};
  return {{.pc = *returns_to, .value = (*regs)[UserReg::kRax], .reg = kArguments.front().second}};
}

}  // namespace backtrail::tracee::cache
