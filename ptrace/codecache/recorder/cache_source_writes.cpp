// SPDX-License-Identifier: Apache-2.0
// Writes to write-protected code pages, by the program and by the kernel.

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
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::UserReg;
using arch::cpu::translate::Slot;

/// More than any signal's frame takes, including the space left free above it.
constexpr std::uint64_t kMostFrameBytes = 64UL * 1024;

/// Returns the flags of a clone call. clone3() takes them from memory; fork() and vfork() have none
/// that matter.
std::uint64_t clone_flags(Process& process, const arch::cpu::UserRegs& regs) {
  if (regs[UserReg::kRax] == SYS_clone) return regs[UserReg::kRdi];
  if (regs[UserReg::kRax] != SYS_clone3) return 0;
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  (void)process.read_memory(TraceeAddr{regs[UserReg::kRdi]}, bytes);
  return std::bit_cast<std::uint64_t>(bytes);
}

}  // namespace

void CacheSource::note_mask(Thread& thread) {
  mask_before_.reset();
  if (process_.cache_space->protected_pages().empty()) return;
  if (const auto mask = request::read_signal_mask(thread.tid())) mask_before_ = *mask;
}

std::optional<StopVerdict> CacheSource::write_hit(Thread& thread, const WaitStatus& status) {
  const auto space = process_.cache_space;
  if (!space || space->protected_pages().empty()) return std::nullopt;
  if (status.kind != WaitKind::kStopped || status.signal != SIGSEGV) return std::nullopt;
  const auto info = request::read_siginfo(thread.tid());
  auto mask = request::read_signal_mask(thread.tid());
  if (!info || !mask) return std::nullopt;
  const bool blocked =
      in_cache_ ? segv_blocked(thread) : (mask_before_.value_or(*mask) & kSegvBit) != 0;
  // One that was sent and is blocked can only be here because a fault was merged into it, and that
  // may have been anywhere.
  const bool merged = info->si_code <= 0;
  const TraceeAddr at{std::bit_cast<std::uint64_t>(info->si_addr)};
  if (merged ? !blocked : info->si_code != SEGV_ACCERR || !space->protected_pages().contains(at)) {
    return std::nullopt;
  }
  if (in_cache_ && !leave(thread)) return StopVerdict::kReport;
  slice().end(thread);
  // The kernel unblocks a signal that it forces.
  if (blocked) *mask |= kSegvBit;
  if (!set_up(thread) || !space->repair_segv(thread, slot_, *mask)) return std::nullopt;
  if (merged) (void)::syscall(SYS_tgkill, thread.id().pid, thread.tid(), SIGSEGV);
  // A failure here ends the thread, or the fault comes again.
  (void)(merged ? space->unprotect_all(thread) : space->let_write(thread, at, written_));
  note_mask(thread);
  ++native_steps_;
  (void)StepSource::resume(thread, last_resume());
  return StopVerdict::kResumed;
}

bool CacheSource::hindered(const arch::cpu::UserRegs& regs) const {
  const cache::ProtectedPages& protected_pages = process_.cache_space->protected_pages();
  if (protected_pages.empty()) return false;
  if (cache::write_effect_of(regs) == cache::WriteEffect::kBuffers) return true;
  constexpr std::array kArguments{UserReg::kRdi, UserReg::kRsi, UserReg::kRdx,
                                  UserReg::kR10, UserReg::kR8,  UserReg::kR9};
  return std::any_of(kArguments.begin(), kArguments.end(), [&](UserReg argument) {
    return protected_pages.contains(TraceeAddr{regs[argument]});
  });
}

void CacheSource::note_written(Thread* thread) {
  if (written_.empty()) return;
  // A thread in a group stop cannot be borrowed.
  if (thread != nullptr && thread->status().is_group_stop()) thread = nullptr;
  if (process_.cache_space) process_.cache_space->note_written(thread, written_);
}

void CacheSource::keep_unprotected(bool on) {
  if (keeps_unprotected_ == on) return;
  keeps_unprotected_ = on;
  if (process_.cache_space) process_.cache_space->keep_unprotected(on);
}

void CacheSource::note_writes(Thread& thread, const arch::cpu::UserRegs& regs) {
  cache::CacheSpace& space = *process_.cache_space;
  switch (cache::write_effect_of(regs)) {
    case cache::WriteEffect::kClone: {
      const std::uint64_t flags = clone_flags(process_, regs);
      if ((flags & CLONE_THREAD) != 0) return;
      // A child that shares the memory for longer than a vfork's child does writes to it, too.
      const bool shares = (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM;
      if (shares) space.keep_unprotected(true);
      keep_unprotected(true);
      break;
    }
    case cache::WriteEffect::kAnyTime:
      space.keep_unprotected(true);  // never undone
      space.let_kernel_write();
      break;
    case cache::WriteEffect::kArguments:
    case cache::WriteEffect::kBuffers:
      if (cache::effect_of(regs) == cache::SyscallEffect::kMappings) {
        const cache::MappingChange change = cache::mapping_change_of(regs);
        (void)space.unprotect(thread, change.begin, change.end);
        return;
      }
      if (cache::effect_of(regs) == cache::SyscallEffect::kSandbox) break;
      if (!hindered(regs)) return;
      break;
  }
  (void)space.unprotect_all(thread);
}

void CacheSource::note_signal_frame(Thread& thread) {
  const auto& space = process_.cache_space;
  const auto regs = thread.user_regs();
  if (!space || space->protected_pages().empty() || !regs) return;
  (void)space->unprotect(thread, regs->sp() - kMostFrameBytes, regs->sp());
}

void CacheSource::make_call_again(Thread& thread) {
  const auto regs = thread.user_regs();
  if (!regs) return;
  arch::cpu::UserRegs again = *regs;
  again[UserReg::kRax] = memory_->read(Slot::kArgument);
  again[UserReg::kRip] -= arch::cpu::kSyscallInsnBytes;
  if (!hindered(again)) return;
  if (thread.set_user_regs(again)) on_pc_written(regs->pc(), again.pc());
}

}  // namespace backtrail::tracee
