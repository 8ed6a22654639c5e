#pragma once
/// @file
/// The memory of a live process.

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"
#include "ptrace/tracee/tracee_memory.hpp"

namespace backtrail::tracee {

/// One address space, reached through one of its threads. Reads /proc/TID/mem (which ignores page
/// protection, and waits for nobody) or else process_vm_readv; writes through the file, or else
/// PTRACE_POKEDATA. Reads need no stopped thread. The descriptor belongs to the address space, so
/// that it goes on working when the thread it was opened by has ended. Once all have ended reads
/// give nothing, without a system call.
class ProcessMemory final : public TraceeMemory {
 public:
  /// Error kTraceeGone. A refused /proc/TID/mem is no error; then only the other ways are left.
  static Result<ProcessMemory> open(pid_t tid);
  /// The thread's new address space: after exec, or by another thread.
  Result<void> reopen(pid_t tid);

  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) override;
  Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data) override;

  /// The thread used for requests that need one; changes when the former one has ended.
  [[nodiscard]] pid_t tid() const { return tid_; }

 private:
  ProcessMemory(pid_t tid, pid_t pid, UniqueFd mem) : tid_{tid}, pid_{pid}, mem_{std::move(mem)} {}
  std::size_t read_vm(TraceeAddr address, std::span<std::uint8_t> out);
  std::size_t read_file(TraceeAddr address, std::span<std::uint8_t> out);
  bool choose_live_thread();
  Result<void> poke(TraceeAddr address, std::span<const std::uint8_t> data);

  pid_t tid_;
  pid_t pid_;
  UniqueFd mem_;
  /// Nobody has this address space any more, so that no way to read it needs to be tried.
  bool gone_ = false;
};

}  // namespace backtrail::tracee
