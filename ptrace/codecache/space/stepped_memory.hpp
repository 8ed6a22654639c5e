// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Knows since when memory of a process whose threads are stepped has been constant.

#include <functional>
#include <memory>
#include <vector>

#include "ptrace/codecache/program/executable_map.hpp"
#include "ptrace/codecache/space/constant_ranges.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// One for each process, shared by its threads. Processes that share memory have one each.
class SteppedMemory {
 public:
  /// Returns that of the process, which is made if there is none.
  static std::shared_ptr<SteppedMemory> of(Process& process);
  /// Returns those of the process and of all that share its memory.
  static std::vector<SteppedMemory*> in_memory_of(Process& process);

  /// Call before and after a system call that changes mappings.
  void change_mappings(const MappingChange& change);
  /// Call when [begin, end) was written in another way than by the program's stores.
  void written(TraceeAddr begin, TraceeAddr end);
  /// Call when a system call has ended.
  void note_call() { is_current_ = is_current_ && executable_.growing().empty(); }
  /// Call when files that `is_of_it` finds may change from now on. Returns true if one of them is
  /// mapped as code.
  bool file_may_change(const std::function<bool(const MapEntry&)>& is_of_it);
  /// Returns the constant memory, after a look at the mappings if they may have changed.
  const ConstantRanges& constant();

 private:
  /// Borrows the process.
  explicit SteppedMemory(Process& process) : process_{process} {}
  void lose(TraceeAddr begin, TraceeAddr end);
  void look_at_mappings();

  Process& process_;
  ExecutableMap executable_;
  ConstantRanges constant_;
  bool is_current_ = false;
};

}  // namespace backtrail::tracee::cache
