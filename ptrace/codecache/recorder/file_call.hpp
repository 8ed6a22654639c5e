#pragma once
/// @file
/// One system call that opens a file, writes to one or changes its length, or writes a process's
/// memory: what it may have changed of code.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/raw_registers.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"

namespace backtrail::tracee {
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CodeWriters;

class FileCall {
 public:
  /// The call that the thread, which stands in front of it, is about to make. nullopt: it cannot
  /// change any code, as far as `writers` know.
  static std::optional<FileCall> begin(Thread& thread, const arch::x86::UserRegs& regs,
                                       SyscallEffect effect, const CodeWriters& writers);
  /// The thread has stopped, as a rule behind the call: tells `writers` what it has done.
  void end(Thread& thread, CodeWriters& writers) const;

 private:
  using Range = std::pair<TraceeAddr, TraceeAddr>;
  FileCall(SyscallEffect effect, TraceeAddr behind) : effect_{effect}, behind_{behind} {}
  /// Where a call of effect kWrites begins to write; nullopt: at the file's position.
  [[nodiscard]] static std::optional<std::uint64_t> offset_of(Thread& thread,
                                                              const arch::x86::UserRegs& regs);
  /// Whether a call of effect kOpens makes the file empty.
  [[nodiscard]] static bool truncates(Thread& thread, const arch::x86::UserRegs& regs);
  /// What a call of effect kWritesMemory names.
  void take_ranges(Thread& thread, const arch::x86::UserRegs& regs);
  void end_write(Thread& thread, std::uint64_t count, CodeWriters& writers) const;

  SyscallEffect effect_;
  TraceeAddr behind_;
  bool truncates_ = false;
  int fd_ = -1;
  std::optional<pid_t> memory_of_;      ///< nullopt: any process's.
  std::optional<std::uint64_t> begin_;  ///< Of what is written to a file.
  bool at_position_ = false;            ///< That is the file's position.
  std::vector<Range> ranges_;           ///< Of what is written to memory.
};

}  // namespace backtrail::tracee::cache
