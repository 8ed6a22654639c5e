// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/code_write_guard.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <utility>

#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;

/// More than any signal's frame takes, including the space left free above it.
constexpr std::uint64_t kMostFrameBytes = 64UL * 1024;

/// Returns the flags of a clone call. clone3() takes them from memory; fork() and vfork() have none
/// that matter.
std::uint64_t clone_flags(Process& process, const arch::cpu::UserRegs& regs) {
  if (syscall_number(regs) == SYS_clone) return syscall_argument(regs, 0);
  if (syscall_number(regs) != SYS_clone3) return 0;
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  (void)process.read_memory(TraceeAddr{syscall_argument(regs, 0)}, bytes);
  return std::bit_cast<std::uint64_t>(bytes);
}

}  // namespace

void CodeWriteGuard::begin_step(Thread& thread) {
  mask_before_.reset();
  if (process_.cache_space->protection().pages().empty()) return;
  if (const auto mask = request::read_signal_mask(thread.tid())) mask_before_ = *mask;
}

bool CodeWriteGuard::may_be_hit(const WaitStatus& status) const {
  return status.kind == WaitKind::kStopped && status.signal == SIGSEGV && process_.cache_space &&
         !process_.cache_space->protection().pages().empty();
}

std::optional<CodeWriteGuard::Hit> CodeWriteGuard::hit(Thread& thread,
                                                       std::optional<bool> blocked) const {
  const auto info = request::read_siginfo(thread.tid());
  if (!info) return std::nullopt;
  if (!blocked) {
    const auto mask = mask_before_ ? Result<std::uint64_t>{*mask_before_}
                                   : request::read_signal_mask(thread.tid());
    if (!mask) return std::nullopt;
    blocked = (*mask & kSegvBit) != 0;
  }
  const Hit hit{.at = TraceeAddr{std::bit_cast<std::uint64_t>(info->si_addr)},
                .merged = info->si_code <= 0,
                .blocked = *blocked};
  if (hit.merged) {
    // A signal that was sent and is blocked can only be here because a fault was merged into it,
    // and that may have been anywhere.
    return hit.blocked ? std::optional{hit} : std::nullopt;
  }
  const bool is_ours =
      info->si_code == SEGV_ACCERR && process_.cache_space->protection().pages().contains(hit.at);
  return is_ours ? std::optional{hit} : std::nullopt;
}

bool CodeWriteGuard::let_write(Thread& thread, const Hit& hit, std::size_t slot) {
  CacheSpace& space = *process_.cache_space;
  auto mask = request::read_signal_mask(thread.tid());
  if (!mask) return false;
  // The kernel unblocks a signal that it forces.
  if (hit.blocked) *mask |= kSegvBit;
  if (!space.segv_action().repair(thread, space.memory().thread(slot), *mask)) return false;
  if (hit.merged) thread.send_again(SIGSEGV);
  // A failure here ends the thread, or the fault comes again.
  (void)(hit.merged ? space.protection().unprotect_all(thread)
                    : space.protection().let_write(thread, hit.at, written_));
  begin_step(thread);
  return true;
}

bool CodeWriteGuard::hinders(const arch::cpu::UserRegs& regs) const {
  const ProtectedPages& protected_pages = process_.cache_space->protection().pages();
  if (protected_pages.empty()) return false;
  if (write_effect_of(regs) == WriteEffect::kBuffers) return true;
  using arch::cpu::kSyscallArguments;
  return std::any_of(kSyscallArguments.begin(), kSyscallArguments.end(), [&](UserReg argument) {
    return protected_pages.contains(TraceeAddr{regs[argument]});
  });
}

void CodeWriteGuard::end_step(Thread* thread) {
  if (written_.empty()) return;
  // A thread in a group stop cannot be borrowed.
  if (thread != nullptr && thread->status().is_group_stop()) thread = nullptr;
  if (process_.cache_space) process_.cache_space->protection().note_written(thread, written_);
}

void CodeWriteGuard::keep_unprotected(bool on) {
  if (keeps_unprotected_ == on) return;
  keeps_unprotected_ = on;
  if (process_.cache_space) process_.cache_space->protection().keep_unprotected(on);
}

void CodeWriteGuard::begin_call(Thread& thread, const arch::cpu::UserRegs& regs) {
  CacheSpace& space = *process_.cache_space;
  switch (write_effect_of(regs)) {
    case WriteEffect::kClone: {
      const std::uint64_t flags = clone_flags(process_, regs);
      if ((flags & CLONE_THREAD) != 0) return;
      // A child that shares the memory for longer than a vfork's child does writes to it, too.
      const bool shares = (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM;
      if (shares) space.protection().keep_unprotected(true);
      keep_unprotected(true);
      break;
    }
    case WriteEffect::kAnyTime:
      for (CacheSpace* each : spaces_in_memory_of(process_)) {
        each->protection().keep_unprotected(true);  // never undone
        each->let_kernel_write();
      }
      break;
    case WriteEffect::kArguments:
    case WriteEffect::kBuffers:
      if (effect_of(regs) == SyscallEffect::kMappings) {
        const MappingChange change = mapping_change_of(regs);
        (void)space.protection().unprotect(thread, change.begin, change.end);
        (void)space.protection().unprotect(thread, change.other_begin, change.other_end);
        return;
      }
      if (effect_of(regs) == SyscallEffect::kSandbox) break;
      if (!hinders(regs)) return;
      break;
  }
  (void)space.protection().unprotect_all(thread);
}

void CodeWriteGuard::begin_delivery(Thread& thread) {
  const auto& space = process_.cache_space;
  const auto regs = thread.user_regs();
  if (!space || space->protection().pages().empty() || !regs) return;
  (void)space->protection().unprotect(thread, regs->sp() - kMostFrameBytes, regs->sp());
}

bool CodeWriteGuard::repeat_call(Thread& thread, std::uint64_t number) const {
  auto regs = thread.user_regs();
  if (!regs) return false;
  set_syscall_number(*regs, number);
  (*regs)[UserReg::kRip] -= arch::cpu::kSyscallInsnBytes;
  return hinders(*regs) && thread.set_user_regs(*regs);
}

void CodeWriteGuard::forget() {
  keeps_unprotected_ = false;
  written_.clear();
}

}  // namespace backtrail::tracee::cache
