// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One system call that opens a file, writes to one, changes its length, or writes a process's
/// memory: tracks which code it may change.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"

namespace backtrail::tracee {
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CodeWriters;

class FileCall {
 public:
  /// Returns the call that the thread is about to make; nullopt if it cannot change any code, as
  /// far as `writers` know.
  static std::optional<FileCall> begin(Thread& thread, const arch::cpu::UserRegs& regs,
                                       SyscallEffect effect, CodeWriters& writers);
  /// Call when the thread has stopped, usually after the call: tells `writers` what was changed.
  void end(Thread& thread, CodeWriters& writers) const;

 private:
  using Range = std::pair<TraceeAddr, TraceeAddr>;
  FileCall(SyscallEffect effect, TraceeAddr behind) : effect_{effect}, behind_{behind} {}
  /// Returns the offset at which a call of effect kWrites begins to write; nullopt: the file's
  /// position.
  [[nodiscard]] static std::optional<std::uint64_t> offset_of(Thread& thread,
                                                              const arch::cpu::UserRegs& regs);
  /// Returns true if a call of effect kOpens truncates the file.
  [[nodiscard]] static bool truncates(Thread& thread, const arch::cpu::UserRegs& regs);
  /// Adds the ranges of memory that a call of effect kWritesMemory names.
  void take_ranges(Thread& thread, const arch::cpu::UserRegs& regs);
  void end_write(Thread& thread, std::uint64_t count, CodeWriters& writers) const;

  SyscallEffect effect_;
  TraceeAddr behind_;
  bool truncates_ = false;
  int fd_ = -1;
  std::optional<pid_t> memory_of_;      ///< nullopt: any process.
  std::optional<std::uint64_t> begin_;  ///< Offset of the bytes written to a file.
  bool at_position_ = false;            ///< The offset is the file's position.
  std::vector<Range> ranges_;           ///< Ranges of memory that are written.
};

}  // namespace backtrail::tracee::cache
