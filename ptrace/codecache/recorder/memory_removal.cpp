// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/memory_removal.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/recorder/call_stop.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

/// A fault this close to the stack pointer may be one for which the stack should grow.
constexpr std::uint64_t kStackReach = 1ULL << 20;

bool may_be_refused(const arch::cpu::UserRegs& regs) {
  switch (syscall_number(regs)) {
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
  const std::uint64_t result = syscall_result(after);
  if (syscall_number(before) == SYS_brk) return result < syscall_argument(before, 0);
  return result == 0 - std::uint64_t{ENOMEM};
}

/// Returns true if the thread's stack was to grow.
bool wants_stack(Thread& thread, const arch::cpu::UserRegs& regs, const WaitStatus& status) {
  if (status.kind != WaitKind::kStopped || status.signal != SIGSEGV) return false;
  const auto info = request::read_siginfo(thread.tid());
  if (!info || info->si_code != SEGV_MAPERR) return false;
  const std::uint64_t at = std::bit_cast<std::uint64_t>(info->si_addr);
  return at + kStackReach - regs.sp().value() <= 2 * kStackReach;
}

/// Lowers the limit on address space by a call of the process, which the server may not do.
void lower_from_within(Thread& thread, CacheMemory& memory) {
  AddressLimit& limit = thread.process().address_limit;
  const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(rlimit)>>(*limit.program());
  const ThreadMemory first = memory.thread(0);
  std::copy(bytes.begin(), bytes.end(), first.scratch(CacheMemory::kLimitOffset));
  const std::uint64_t at = (first.page() + CacheMemory::kLimitOffset).value();
  auto remote = RemoteCalls::begin(thread);
  const auto set = remote ? remote->call(SYS_prlimit64, {0, RLIMIT_AS, at, 0})
                          : Result<std::uint64_t>{tl::unexpected{remote.error()}};
  if (!set) log::ptrace().warn("tid={}: {}", thread.tid(), set.error().message());
  limit = {};
}

}  // namespace

void MemoryRemoval::begin(const arch::cpu::UserRegs& regs) {
  if (!process_.cache_space || !process_.address_limit.counts_ours()) return;
  if (may_be_refused(regs)) call_ = regs;
}

bool MemoryRemoval::is_wanted(Thread& thread, const WaitStatus& status) {
  const auto call = std::exchange(call_, std::nullopt);
  const auto& space = process_.cache_space;
  if (!space || space->memory().removed() || !process_.address_limit.counts_ours()) return false;
  const auto regs = thread.user_regs();
  if (!regs) return false;
  const bool refused = call &&
                       has_made_call(thread, *regs, call->pc() + arch::cpu::kSyscallInsnBytes) &&
                       was_refused(*call, *regs);
  if (refused) {
    arch::cpu::UserRegs again = *call;
    leave_syscall(again);
    if (!thread.set_user_regs(again)) return false;
  } else if (!wants_stack(thread, *regs, status)) {
    return false;
  }
  disable_("its address space is limited (RLIMIT_AS)");
  return true;
}

bool MemoryRemoval::has_to_wait(Thread& thread) {
  const auto& space = process_.cache_space;
  if (!space || !space->disabled() || space->memory().removed()) return false;
  if (!process_.address_limit.counts_ours() && !space->is_given_up()) return false;
  if (wait_.has_to_go_on(space->threads().anybody_inside())) return true;
  wait_.end();
  if (space->threads().anybody_inside()) return false;
  (void)space->protection().unprotect_all(thread);
  remove_memory(thread, *space);
  return false;
}

void remove_memory(Thread& thread, CacheSpace& space) {
  CacheMemory& memory = space.memory();
  if (memory.removed()) return;
  Process& process = thread.process();
  if (!process.address_limit.lower(process.pid())) lower_from_within(thread, memory);
  if (const auto removed = memory.remove(thread); !removed) {
    log::ptrace().warn("tid={}: {}", thread.tid(), removed.error().message());
  }
}

void remove_left_memory(Thread& thread) {
  Process& process = thread.process();
  CodeWriters& writers = *process.code_writers;
  const auto left = writers.left_memory(process);
  if (left.empty() || thread.in_syscall()) return;
  const auto [first, end_of_first] = left.front();
  const auto call = system_call(SYS_munmap, {first.value(), end_of_first - first});
  if (!process.filters.allow(call)) return;
  auto remote = RemoteCalls::begin(thread);
  if (!remote) return;
  // Forgotten first: the program may map memory of its own where it has been unmapped.
  for (const auto& [begin, end] : writers.take_left_memory(process)) {
    const auto done = remote->call(SYS_munmap, {begin.value(), end - begin});
    if (!done) log::ptrace().debug("tid={}: {}", thread.tid(), done.error().message());
  }
  for (CacheSpace* space : spaces_in_memory_of(process)) space->mappings_changed();
}

}  // namespace backtrail::tracee::cache
