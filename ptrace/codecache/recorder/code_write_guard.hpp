// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes of one thread to write-protected code pages, by its instructions and by the kernel for
/// it.

#include <cstdint>
#include <optional>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/os/wait_status.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// An instruction that writes to such a page faults: may_be_hit() and hit() recognise the stop, and
/// let_write() unprotects the page for one step, after which end_step() protects it again. The
/// kernel does not fault, but its call fails with EFAULT: begin_call() and begin_delivery()
/// unprotect what it may write.
class CodeWriteGuard {
 public:
  explicit CodeWriteGuard(Process& process) : process_{process} {}

  /// Call before the thread executes an instruction natively. The process must have a space, as for
  /// the next two.
  void begin_step(Thread& thread);
  /// Call if that instruction is a system call, made with `regs`: unprotects the pages that it may
  /// write. A call that copies the memory keeps all pages unprotected until end_call().
  void begin_call(Thread& thread, const arch::cpu::UserRegs& regs);
  /// Call before a signal is delivered: unprotects pages below the stack pointer, where its frame
  /// may be written.
  void begin_delivery(Thread& thread);

  /// Call at the next stop, or when the thread is not recorded any more.
  void end_call() { keep_unprotected(false); }
  /// Call at the next stop that is no hit: protects the pages again that were unprotected for one
  /// step. `thread` is null if it has ended.
  void end_step(Thread* thread);
  /// Call after an exec: the pages were the old program's.
  void forget();

  struct Hit {
    TraceeAddr at;         ///< The address that was to be written.
    bool merged = false;   ///< A signal was sent, too, and the address is unknown.
    bool blocked = false;  ///< The program blocks SIGSEGV.
  };
  /// Returns false for stops of which hit() need not be asked.
  [[nodiscard]] bool may_be_hit(const WaitStatus& status) const;
  /// Returns the write that caused this stop; nullopt if none did.
  /// @param blocked the program blocks SIGSEGV; nullopt: as noted by begin_step()
  [[nodiscard]] std::optional<Hit> hit(Thread& thread, std::optional<bool> blocked) const;
  /// Makes a step of the thread, which stands before the instruction in its native state, complete
  /// the write. Restores what the fault did to mask and action of SIGSEGV. Returns false if that
  /// fails.
  /// @param slot the thread's part of the space's memory
  bool let_write(Thread& thread, const Hit& hit, std::size_t slot);

  /// Call after a call of translated code has failed with EFAULT. Makes the thread, which stands
  /// after the call, stand before it again. Returns false if write protection cannot be why.
  /// @param number the call's, which the result has overwritten
  bool repeat_call(Thread& thread, std::uint64_t number) const;

 private:
  /// Returns true if write-protected pages may keep the kernel from writing for this call.
  [[nodiscard]] bool hinders(const arch::cpu::UserRegs& regs) const;
  void keep_unprotected(bool on);

  Process& process_;
  bool keeps_unprotected_ = false;                    ///< For a call that was begun.
  std::optional<std::uint64_t> mask_before_;          ///< Signal mask before the current step.
  std::vector<PageProtection::WrittenPage> written_;  ///< Pages that the current step may write.
};

}  // namespace backtrail::tracee::cache
