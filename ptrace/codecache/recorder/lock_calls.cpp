// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/lock_calls.hpp"

#include <numeric>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/persist/fixed_addresses.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/resource_limits.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kKnownLocks = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;

bool may_lock(Thread& thread, std::uint64_t bytes) {
  constexpr std::uint64_t kMayLock = 1ULL << 14;  // CAP_IPC_LOCK
  if ((signal_set(thread.tid(), "CapEff") & kMayLock) != 0) return true;
  const auto limit = limit_of(thread.process().pid(), LimitedResource::kLockedMemory);
  return limit && bytes <= limit->rlim_cur;
}

/// Returns false if no calls can be made.
bool lock(Thread& thread, const std::vector<MapEntry>& maps, std::uint64_t how) {
  auto remote = RemoteCalls::begin(thread);
  if (!remote) return false;
  const std::uint64_t flags = (how & MCL_ONFAULT) != 0 ? MLOCK_ONFAULT : 0;
  // Memory that cannot be populated is locked even so, as by mlockall().
  for (const MapEntry& map : maps) {
    (void)remote->call(SYS_mlock2, {map.start, map.end - map.start, flags});
  }
  return true;
}

}  // namespace

std::optional<arch::cpu::UserRegs> lock_program_memory(Thread& thread,
                                                       const arch::cpu::UserRegs& regs,
                                                       bool keeps_translations) {
  const std::uint64_t how = syscall_argument(regs, 0);
  const auto& space = thread.process().cache_space;
  if (!space || space->memory().removed() || (how & ~kKnownLocks) != 0) return std::nullopt;
  if (keeps_translations) give_room_back(thread);
  auto maps = ProcFs{}.maps(thread.process().pid());
  if (!maps) return std::nullopt;
  const auto ours = recorders_memory(thread.process());
  std::erase_if(*maps, [&](const MapEntry& map) {
    return is_in(TraceeAddr{map.start}, ours) || map.path == "[vsyscall]";
  });
  const std::uint64_t bytes = std::accumulate(
      maps->begin(), maps->end(), std::uint64_t{0},
      [](std::uint64_t sum, const MapEntry& map) { return sum + (map.end - map.start); });
  // If this is too much, so is all memory.
  if (!may_lock(thread, bytes) || !lock(thread, *maps, how)) return std::nullopt;
  arch::cpu::UserRegs changed = regs;
  set_syscall_argument(changed, 0, how & ~std::uint64_t{MCL_CURRENT});
  if ((how & MCL_FUTURE) == 0) {
    // No work is left, but the call itself may be forbidden.
    set_syscall_number(changed, SYS_mlock);
    set_syscall_argument(changed, 0, 0);
    set_syscall_argument(changed, 1, 0);
  }
  return changed;
}

}  // namespace backtrail::tracee::cache
