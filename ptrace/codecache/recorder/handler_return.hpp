// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The return of a thread from a signal handler, straight into translated code.

#include <cstdint>
#include <optional>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "decoder/trace/record.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/source/signal_slice.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CacheSpace;

/// Follows one return by rt_sigreturn that the server prepares: the kernel is given a copy of the
/// frame that lets the thread go on in translated code, which is one stop less than a step over the
/// call. Translated code does the same by itself where no slice has to be noted
/// (docs/codecache/signals.md).
class HandlerReturn {
 public:
  /// The thread stands in its native state before a system call, and the program's limit on address
  /// space does not count the recorder's memory. If the call is rt_sigreturn: copies the frame,
  /// notes the return for the slice, and returns the registers with which the thread makes the
  /// call; nullopt, and nothing is begun, if the call has to be stepped.
  [[nodiscard]] std::optional<arch::cpu::UserRegs> begin(Thread& thread, CacheSpace& space,
                                                         ThreadMemory& memory, SignalSlice& slice);
  /// Returns true if the thread may not have made the call yet.
  [[nodiscard]] bool in_progress() const { return made_.has_value(); }
  /// Call when the thread has been seen after the call. Returns the branch of the return, once.
  [[nodiscard]] std::optional<decoder::Record> take();
  /// Call when the thread has stopped outside of translated code: it has not returned. Restores its
  /// native state.
  void undo(Thread& thread, SignalSlice& slice);
  /// Call after an exec.
  void forget() { made_.reset(); }

 private:
  struct Made {
    TraceeAddr at;  ///< Address of the system call.
    TraceeAddr to;
    TraceeAddr stack;        ///< The program's stack pointer.
    std::uint64_t held = 0;  ///< SignalSlice::held() before the call.
  };
  std::optional<Made> made_;
};

/// Sets the slots that tell translated code which calls, and whether returns from handlers, must
/// stop.
/// @param limit_counts_ours the program's limit on address space counts the recorder's memory
void note_slice(ThreadMemory& memory, const SignalSlice& slice, bool limit_counts_ours);

}  // namespace backtrail::tracee::cache
