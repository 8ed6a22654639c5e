// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/signal_facts.hpp"

#include <utility>

#include "arch/cpu/general_registers.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "arch/cpu/values.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;
using arch::cpu::values::kGeneralRegisters;

std::vector<decoder::ValueFact> facts_of(const arch::cpu::UserRegs& regs, bool has_result) {
  std::vector<decoder::ValueFact> out;
  out.reserve(kGeneralRegisters.size() + 1);
  out.push_back({.pc = regs.pc(),
                 .value = regs[UserReg::kEflags] & arch::cpu::values::kTrackedFlags,
                 .kind = arch::kFlagsKind});
  for (std::size_t i = 0; i < kGeneralRegisters.size(); ++i) {
    if (kGeneralRegisters.at(i) == arch::cpu::kSyscallResult && !has_result) continue;
    out.push_back({.pc = regs.pc(),
                   .value = regs[kGeneralRegisters.at(i)],
                   .kind = static_cast<arch::ValueKind>(i)});
  }
  return out;
}

}  // namespace

void SignalFacts::begin(Thread& thread) {
  const auto regs = thread.user_regs();
  if (!regs) return;
  before_ = *regs;
  in_call_ = thread.in_syscall() || thread.syscall_will_restart();
}

void SignalFacts::stop(Thread& thread) {
  after_.reset();
  if (!before_ || thread.status().kind != WaitKind::kStopped) return;
  if (const auto regs = thread.user_regs()) after_ = *regs;
}

std::vector<decoder::ValueFact> SignalFacts::before(const decoder::Record& delivery) const {
  // A call that will be repeated is returned to.
  if (before_->pc() != delivery.from) return {};
  return facts_of(*before_, !in_call_);
}

std::vector<decoder::ValueFact> SignalFacts::after(const decoder::Record& delivery) {
  const auto regs = std::exchange(after_, std::nullopt);
  before_.reset();
  if (regs->pc() != delivery.to) return {};
  return facts_of(*regs, true);
}

void SignalFacts::forget() {
  before_.reset();
  after_.reset();
}

}  // namespace backtrail::tracee::cache
