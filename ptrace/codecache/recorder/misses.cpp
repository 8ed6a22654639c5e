// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/misses.hpp"

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/recorder/native_state.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;
using translate::Slot;

/// At least the number of bytes that a checked superblock is made of.
constexpr std::uint64_t kMostCheckedBytes = 128;

}  // namespace

MissAnswer answer_miss(Process& process, CacheSpace& space, const ThreadMemory& memory,
                       TraceeAddr log) {
  CodeCache& code = space.code();
  const auto exit = last_exit(code, memory, log);
  if (!exit) return {};
  if (exit->kind == translate::ExitKind::kUntranslatable) return {{}, exit->reason};
  const bool indirect = exit->kind == translate::ExitKind::kIndirect;
  const bool stale = exit->kind == translate::ExitKind::kStale;
  if (stale) process.insns().invalidate(exit->to, exit->to + kMostCheckedBytes);
  const FoundCode translation = look_for_code(space, exit->to, [&] {
    return stale      ? code.renew(exit->id)
           : indirect ? code.ib_entry(exit->to)
                      : code.translation(exit->to);
  });
  if (const auto* reason = std::get_if<translate::UntranslatableReason>(&translation)) {
    return {{}, *reason};
  }
  const TraceeAddr next = std::get<TraceeAddr>(translation);
  if (!indirect && !stale) code.link(exit->id, next);
  return {next, {}};
}

arch::cpu::UserRegs registers_after_miss(const arch::cpu::UserRegs& stopped,
                                         const ThreadMemory& memory, TraceeAddr log,
                                         TraceeAddr next) {
  arch::cpu::UserRegs regs = stopped;
  regs[UserReg::kRax] = memory.read(Slot::kRax);
  regs[UserReg::kRcx] = memory.read(Slot::kRcx);
  regs[UserReg::kRdx] = memory.read(Slot::kRdx);
  regs[UserReg::kRsi] = memory.read(Slot::kRsi);
  regs[UserReg::kRdi] = memory.read(Slot::kRdi);
  regs[UserReg::kR11] = log.value();
  regs[UserReg::kRip] = next.value();
  leave_syscall(regs);
  return regs;
}

}  // namespace backtrail::tracee::cache
