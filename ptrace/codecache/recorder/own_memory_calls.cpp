// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/own_memory_calls.hpp"

#include <cerrno>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/recorder/call_stop.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/codecache/syscalls/compat_calls.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;

/// Makes the thread return from the call before which it stands.
bool return_from_call(Thread& thread, int error) {
  const auto regs = thread.user_regs();
  if (!regs) return false;
  const std::uint64_t result = 0 - static_cast<std::uint64_t>(error);
  arch::cpu::UserRegs after = after_call(*regs, result);
  if (!arch::cpu::is_syscall(thread.process().insn_bytes(regs->pc()))) {
    // INT 0x80, which is as long, leaves these as they were.
    for (const UserReg reg : {UserReg::kRcx, UserReg::kR11}) after[reg] = (*regs)[reg];
  }
  return thread.set_user_regs(after).has_value();
}

}  // namespace

std::optional<arch::cpu::UserRegs> OwnMemoryCalls::mapping_call(Thread& thread) {
  const auto regs = thread.user_regs();
  if (!regs) return std::nullopt;
  const bool may_be_plain = effect_of(*regs) == SyscallEffect::kMappings;
  const bool may_be_compat = may_have_plain_call(*regs);
  if (!may_be_plain && !may_be_compat) return std::nullopt;
  const auto insn = process_.insn_bytes(regs->pc());
  if (may_be_plain && arch::cpu::is_syscall(insn)) return *regs;
  if (!may_be_compat || !arch::cpu::is_int80(insn)) return std::nullopt;
  return as_plain_call(*regs, [this](TraceeAddr at, std::span<std::uint8_t> out) {
    return process_.read_memory(at, out);
  });
}

OwnMemoryCalls::Found OwnMemoryCalls::begin(Thread& thread) {
  if (!process_.cache_space) return Found::kNone;
  const auto regs = mapping_call(thread);
  if (!regs) return Found::kNone;
  const CallAround call = call_around(*regs, recorders_memory(process_));
  switch (call.names) {
    case CallAround::Names::kNothing:
      break;
    case CallAround::Names::kMappings:
      return make_around(thread, *regs, call);
    case CallAround::Names::kPlaces:
      return replace(thread, *regs);
  }
  return Found::kNone;
}

void OwnMemoryCalls::warn(const arch::cpu::UserRegs& regs, const char* consequence) {
  if (!process_.cache_space->begins_to_warn()) return;
  log::ptrace().warn("pid={}: a system call at {} names memory of the recorder: {}", process_.pid(),
                     regs.pc(), consequence);
}

OwnMemoryCalls::Found OwnMemoryCalls::replace(Thread& thread, const arch::cpu::UserRegs& regs) {
  CacheSpace& space = *process_.cache_space;
  if (!space.memory().removed() && !space.is_given_up()) {
    warn(regs, "the program maps memory of its own there, so it is stepped from here on");
    disable_("the program maps memory where the recorder's is");
    space.give_up_memory();
    if (removal_.has_to_wait(thread)) return Found::kWait;
    if (call_around(regs, recorders_memory(process_)).names == CallAround::Names::kNothing) {
      return Found::kNone;
    }
  }
  // A thread does not leave translated code, or the memory is that of another process.
  return return_from_call(thread, ENOMEM) ? Found::kMade : Found::kNone;
}

OwnMemoryCalls::Found OwnMemoryCalls::make_around(Thread& thread, const arch::cpu::UserRegs& regs,
                                                  const CallAround& call) {
  warn(regs, "it has no effect on that");
  const int error = make_parts(thread, regs, call);
  return return_from_call(thread, error != 0 ? error : call.error) ? Found::kMade : Found::kNone;
}

int OwnMemoryCalls::make_parts(Thread& thread, const arch::cpu::UserRegs& regs,
                               const CallAround& call) {
  for (const auto& [begin, end] : call.parts) {
    arch::cpu::UserRegs part = regs;
    set_syscall_argument(part, 0, begin.value());
    set_syscall_argument(part, 1, end - begin);
    const MappingChange change = mapping_change_of(part);
    const auto spaces = spaces_in_memory_of(process_);
    (void)process_.cache_space->protection().unprotect(thread, begin, end);
    for (CacheSpace* space : spaces) space->change_mappings(change);
    auto remote = RemoteCalls::begin(thread);
    if (!remote) return ENOMEM;
    const auto made =
        remote->call(syscall_number(part), {syscall_argument(part, 0), syscall_argument(part, 1),
                                            syscall_argument(part, 2), syscall_argument(part, 3)});
    for (CacheSpace* space : spaces) space->change_mappings(change);
    if (made) continue;
    const std::error_code& code = made.error().code;
    return code.category() == std::system_category() ? code.value() : EPERM;
  }
  return 0;
}

}  // namespace backtrail::tracee::cache
