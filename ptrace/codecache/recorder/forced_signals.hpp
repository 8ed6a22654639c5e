// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Signals that the recorder's own traps and faults raise in a thread.

#include <csignal>
#include <cstddef>
#include <optional>

#include "arch/base/address.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"

namespace backtrail::tracee {
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CacheSpace;

/// Returns the siginfo if an instruction raised the signal of the present stop.
[[nodiscard]] std::optional<siginfo_t> raised_by_insn(Thread& thread);

/// Call for a thread in its native state before an instruction, whose translation has raised the
/// signal. Returns true if the instruction itself would have raised it there, and sets what the
/// signal says of the place. False if that may be an access of the translation's own: the CPU must
/// decide.
[[nodiscard]] bool raised_by_program(Thread& thread, siginfo_t& info);

/// A thread in translated code that has stopped for a signal. The kernel forces the signal of a
/// trap or fault: where the program blocks or ignores it, it unblocks the signal and resets its
/// action. The recorder undoes that before anybody can see it.
class ForcedSignals {
 public:
  /// @param slot the thread's, of `memory`
  ForcedSignals(CacheSpace& space, const ThreadMemory& memory, std::size_t slot)
      : space_{space}, memory_{memory}, slot_{slot} {}

  /// Returns true if the program blocks SIGSEGV.
  [[nodiscard]] bool segv_blocked(Thread& thread) const;
  /// Returns the address of an access that raised SIGSEGV, or the log's end if unknown; nullopt if
  /// the signal was sent.
  [[nodiscard]] std::optional<TraceeAddr> fault_at(Thread& thread) const;
  /// Returns true if SIGSEGV was raised because the log is full.
  [[nodiscard]] bool is_full_log(Thread& thread) const;
  /// Handles a fault of translated code itself: restores mask and action, and sends a SIGSEGV again
  /// that was merged with it. Returns false if they cannot be restored.
  [[nodiscard]] bool take_fault(Thread& thread) const;
  /// Undoes the effects of the dispatch stub's trap: restores the signal mask, and sends a SIGTRAP
  /// again that was merged with the trap. Returns false if the mask cannot be set.
  [[nodiscard]] bool take_trap(Thread& thread) const;

 private:
  CacheSpace& space_;
  const ThreadMemory& memory_;
  std::size_t slot_;
};

}  // namespace backtrail::tracee::cache
