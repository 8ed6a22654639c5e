// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of a live process.

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"
#include "ptrace/tracee/tracee_memory.hpp"

namespace backtrail::tracee {

/// One address space, accessed through one of its threads. Reads use /proc/TID/mem (which ignores
/// page protection and does not wait for userfaultfd(2)) or else process_vm_readv; writes use
/// /proc/TID/mem or else PTRACE_POKEDATA. Reads need no stopped thread. The descriptor belongs to
/// the address space, so it keeps working when the thread that it was opened for has ended. Once
/// all threads have ended, reads return 0 without a system call.
class ProcessMemory final : public TraceeMemory {
 public:
  /// Error kTraceeGone. If /proc/TID/mem is refused, only the fallbacks remain; that is not an
  /// error.
  static Result<ProcessMemory> open(pid_t tid);
  /// As open(tid), of the process `pid`.
  static Result<ProcessMemory> open(pid_t pid, pid_t tid);
  /// As open(tid), of the process `pid`, whose first thread is in a stop.
  static Result<ProcessMemory> open_stopped(pid_t pid);
  /// Opens the thread's address space anew, after an exec. The thread is in a stop.
  Result<void> reopen(pid_t tid);

  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) override;
  Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data) override;

 private:
  ProcessMemory(pid_t tid, pid_t pid, UniqueFd mem) : tid_{tid}, pid_{pid}, mem_{std::move(mem)} {}
  std::size_t read_vm(TraceeAddr address, std::span<std::uint8_t> out);
  std::size_t read_file(TraceeAddr address, std::span<std::uint8_t> out);
  bool choose_live_thread();
  Result<void> choose_and_reopen(pid_t tid);
  Result<void> poke(TraceeAddr address, std::span<const std::uint8_t> data);

  pid_t tid_;  ///< For requests that need a thread; changes when that thread has ended.
  pid_t pid_;
  UniqueFd mem_;
  /// The address space has no threads left; all reads return 0.
  bool gone_ = false;
};

}  // namespace backtrail::tracee
