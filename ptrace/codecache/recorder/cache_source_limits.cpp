// SPDX-License-Identifier: Apache-2.0
// Limits on address space and locked memory, which must not count the recorder's memory.

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <numeric>
#include <utility>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/persist/fixed_addresses.hpp"
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/resource_limits.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::UserReg;
using arch::cpu::translate::Slot;
using cache::CacheMemory;

using LimitBytes = std::array<std::uint8_t, sizeof(rlimit)>;

/// A fault this close to the stack pointer may be one for which the stack should grow.
constexpr std::uint64_t kStackReach = 1ULL << 20;
constexpr std::uint64_t kKnownLocks = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;

std::optional<rlimit> read_limit(Process& process, TraceeAddr at) {
  LimitBytes bytes{};
  if (process.read_memory(at, bytes) != bytes.size()) return std::nullopt;
  return std::bit_cast<rlimit>(bytes);
}

bool may_be_refused(const arch::cpu::UserRegs& regs) {
  switch (static_cast<std::uint32_t>(regs[UserReg::kRax])) {
    case SYS_brk:
    case SYS_mmap:
    case SYS_mremap:
    case SYS_shmat:
      return true;
    default:
      return false;
  }
}

bool was_refused(const arch::cpu::UserRegs& before, const arch::cpu::UserRegs& after) {
  const std::uint64_t result = after[UserReg::kRax];
  if (before[UserReg::kRax] == SYS_brk) return result < before[UserReg::kRdi];
  return result == 0 - std::uint64_t{ENOMEM};
}

/// Returns true if the call has been made and has ended.
bool is_behind(Thread& thread, const arch::cpu::UserRegs& regs, TraceeAddr behind) {
  return regs.pc() == behind && !thread.in_syscall() && !thread.syscall_will_restart();
}

}  // namespace

bool CacheSource::is_own_limit(const cache::LimitCall& call) const {
  if (call.process == 0) return true;
  const auto id = memory_ ? static_cast<pid_t>(memory_->read(Slot::kProcessId)) : process_.pid();
  return call.process == id;
}

void CacheSource::begin_limit_call(Thread& thread, const arch::cpu::UserRegs& regs,
                                   bool is_watched) {
  const auto& space = process_.cache_space;
  const TraceeAddr behind = regs.pc() + arch::cpu::kSyscallInsnBytes;
  if (space && process_.address_limit.counts_ours() && may_be_refused(regs)) mapping_call_ = regs;
  const auto call = cache::limit_call_of(regs);
  if (!call || !is_own_limit(*call)) return;
  limit_call_ = LimitedCall{.call = *call, .behind = behind, .wanted = {}, .given = {}};
  if (call->new_at == TraceeAddr{}) return;
  if (persistent_store_) cache::give_room_back(thread);
  limit_call_->wanted = read_limit(process_, call->new_at);
  // A debugger must see the program's own call; the limit is then raised afterwards.
  if (!limit_call_->wanted || !memory_ || !space || space->memory().removed() || is_watched) return;
  const rlimit given = process_.address_limit.raised(*limit_call_->wanted);
  const auto bytes = std::bit_cast<LimitBytes>(given);
  std::copy(bytes.begin(), bytes.end(), memory_->scratch(CacheMemory::kLimitOffset));
  arch::cpu::UserRegs changed = regs;
  arch::cpu::set_syscall_argument(changed, call->new_in,
                                  (memory_->page() + CacheMemory::kLimitOffset).value());
  if (change_call(thread, regs, changed)) limit_call_->given = given;
}

bool CacheSource::change_call(Thread& thread, const arch::cpu::UserRegs& regs,
                              const arch::cpu::UserRegs& changed) {
  if (!thread.set_user_regs(changed)) return false;
  changed_call_ = regs;
  return true;
}

void CacheSource::end_changed_call(Thread& thread) {
  const auto before = std::exchange(changed_call_, std::nullopt);
  auto regs = thread.user_regs();
  if (!before || !regs) return;
  for (const UserReg argument : {UserReg::kRdi, UserReg::kRsi, UserReg::kRdx}) {
    (*regs)[argument] = (*before)[argument];
  }
  if (regs->pc() == before->pc()) (*regs)[UserReg::kRax] = (*before)[UserReg::kRax];
  (void)thread.set_user_regs(*regs);
}

void CacheSource::end_limit_call(Thread& thread) {
  if (!limit_call_ || thread.in_syscall()) return;
  const LimitedCall made = *std::exchange(limit_call_, std::nullopt);
  const auto regs = thread.user_regs();
  if (!regs) return;
  if (!is_behind(thread, *regs, made.behind) || (*regs)[UserReg::kRax] != 0) return;
  AddressLimit& limit = process_.address_limit;
  if (limit.program() && made.call.old_at != TraceeAddr{}) {
    (void)process_.write_data(made.call.old_at, std::bit_cast<LimitBytes>(*limit.program()));
  }
  if (!made.wanted) return;
  limit.note_set(process_.pid(), *made.wanted, made.given.value_or(*made.wanted));
  if (process_.cache_space) process_.cache_space->note_limit();
}

bool CacheSource::may_lock_all(Thread& thread, std::uint64_t bytes) const {
  constexpr std::uint64_t kMayLock = 1ULL << 14;  // CAP_IPC_LOCK
  if ((signal_set(thread.tid(), "CapEff") & kMayLock) != 0) return true;
  const auto limit = limit_of(process_.pid(), LimitedResource::kLockedMemory);
  return limit && bytes <= limit->rlim_cur;
}

void CacheSource::begin_lock_call(Thread& thread, const arch::cpu::UserRegs& regs) {
  const std::uint64_t how = regs[UserReg::kRdi];
  const auto& space = process_.cache_space;
  if (!space || space->memory().removed() || (how & ~kKnownLocks) != 0) return;
  if (persistent_store_) cache::give_room_back(thread);
  auto maps = ProcFs{}.maps(process_.pid());
  if (!maps) return;
  std::erase_if(*maps, [&](const MapEntry& map) {
    return space->memory().has_mapped(TraceeAddr{map.start}) || map.path == "[vsyscall]";
  });
  const std::uint64_t bytes = std::accumulate(
      maps->begin(), maps->end(), std::uint64_t{0},
      [](std::uint64_t sum, const MapEntry& map) { return sum + (map.end - map.start); });
  if (!may_lock_all(thread, bytes)) return;  // if this is too much, so is all memory
  {
    auto remote = RemoteCalls::begin(thread);
    if (!remote) return;
    const std::uint64_t flags = (how & MCL_ONFAULT) != 0 ? MLOCK_ONFAULT : 0;
    // Memory that cannot be populated is locked even so, as by mlockall().
    for (const MapEntry& map : *maps) {
      (void)remote->call(SYS_mlock2, {map.start, map.end - map.start, flags});
    }
  }
  arch::cpu::UserRegs changed = regs;
  changed[UserReg::kRdi] = how & ~std::uint64_t{MCL_CURRENT};
  if ((how & MCL_FUTURE) == 0) {
    // No work is left, but the call itself may be forbidden.
    changed[UserReg::kRax] = SYS_mlock;
    changed[UserReg::kRdi] = 0;
    changed[UserReg::kRsi] = 0;
  }
  (void)change_call(thread, regs, changed);
}

bool CacheSource::is_memory_wanted(Thread& thread, const WaitStatus& status) {
  const auto call = std::exchange(mapping_call_, std::nullopt);
  const auto& space = process_.cache_space;
  if (!space || space->memory().removed() || !process_.address_limit.counts_ours()) return false;
  const auto regs = thread.user_regs();
  if (!regs) return false;
  if (call && is_behind(thread, *regs, call->pc() + arch::cpu::kSyscallInsnBytes) &&
      was_refused(*call, *regs)) {
    arch::cpu::UserRegs again = *call;
    again[UserReg::kOrigRax] = arch::cpu::kNoSystemCall;
    if (!thread.set_user_regs(again)) return false;
    disable("its address space is limited (RLIMIT_AS)");
    return true;
  }
  if (status.kind != WaitKind::kStopped || status.signal != SIGSEGV) return false;
  const auto info = request::read_siginfo(thread.tid());
  if (!info || info->si_code != SEGV_MAPERR) return false;
  const std::uint64_t at = std::bit_cast<std::uint64_t>(info->si_addr);
  if (at + kStackReach - regs->sp().value() > 2 * kStackReach) return false;
  disable("its address space is limited (RLIMIT_AS)");
  return true;
}

bool CacheSource::memory_has_to_wait(Thread& thread) {
  const auto& space = process_.cache_space;
  if (!space || !space->disabled() || !process_.address_limit.counts_ours() ||
      space->memory().removed()) {
    return false;
  }
  if (space->anybody_inside() && ++waits_ < kMostWaits) return true;
  waits_ = 0;
  if (space->anybody_inside()) return false;
  (void)space->unprotect_all(thread);
  remove_memory(thread, *space);
  return false;
}

void CacheSource::remove_memory(Thread& thread, cache::CacheSpace& space) {
  CacheMemory& memory = space.memory();
  if (memory.removed()) return;
  AddressLimit& limit = process_.address_limit;
  if (!limit.lower(process_.pid())) {
    // The server may not set the process's limits, so the process does it.
    const auto bytes = std::bit_cast<LimitBytes>(*limit.program());
    cache::ThreadMemory first = memory.thread(0);
    std::copy(bytes.begin(), bytes.end(), first.scratch(CacheMemory::kLimitOffset));
    const std::uint64_t at = (first.page() + CacheMemory::kLimitOffset).value();
    auto remote = RemoteCalls::begin(thread);
    const auto set = remote ? remote->call(SYS_prlimit64, {0, RLIMIT_AS, at, 0})
                            : Result<std::uint64_t>{tl::unexpected{remote.error()}};
    if (!set) log::ptrace().warn("tid={}: {}", thread.tid(), set.error().message());
    limit = {};
  }
  if (const auto removed = memory.remove(thread); !removed) {
    log::ptrace().warn("tid={}: {}", thread.tid(), removed.error().message());
  }
}

}  // namespace backtrail::tracee
