// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Inline system calls of an address space: those that translated code makes itself.

#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/os/seccomp_filter.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class InlineCalls {
 public:
  /// Borrows both. All that the process's filters and its limit on address space let translated
  /// code make.
  InlineCalls(const Process& process, CacheMemory& memory);

  /// The calls; translated code checks what Policy says at each of them.
  [[nodiscard]] const arch::cpu::translate::InlineSystemCalls& calls() const { return calls_; }

  // These functions return true if calls() has changed.

  /// Leaves out the calls that these filters do not allow.
  bool restrict_to(const SeccompFilters& filters);
  /// Call when the program's limit on address space has changed. If the recorder's memory counts
  /// against it, calls that may fail for that reason are left to the CPU, so that the memory can be
  /// removed first.
  bool note_limit();

  /// Call when a process of the tree may write to /proc/PID/mem: writes to files are left out.
  void watch_writes();

 private:
  using Calls = arch::cpu::translate::InlineSystemCalls;
  bool change(const Calls& calls);
  void leave_out_mapping_calls(Calls& calls) const;

  const Process& process_;
  CacheMemory& memory_;
  Calls calls_;
};

}  // namespace backtrail::tracee::cache
