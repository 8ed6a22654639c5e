// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls that install a seccomp filter, which also judges the calls of translated code.

#include <optional>
#include <utility>

#include "arch/cpu/registers.hpp"
#include "ptrace/codecache/recorder/disable_space.hpp"
#include "ptrace/codecache/recorder/limited_wait.hpp"
#include "ptrace/os/seccomp_filter.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Follows one thread's call from begin() to end(). If the filter may apply to other threads at
/// once, they must leave translated code first: has_to_wait() closes the space's gate until then.
class FilterCalls {
 public:
  FilterCalls(Process& process, DisableSpace disable)
      : process_{process}, disable_{std::move(disable)} {}

  /// Call if the thread's next instruction installs a filter.
  void begin(Thread& thread, const arch::cpu::UserRegs& regs);
  /// Call before the thread makes the call or executes another instruction. Returns true if other
  /// threads must leave translated code first; use cancel(), and begin() again when they had time.
  [[nodiscard]] bool has_to_wait();
  /// Call if the thread does not make the call now. The gate stays as it is.
  void cancel() { call_.reset(); }
  /// Call when the filter has been installed, the call has failed, or it was not made. Does nothing
  /// if none was begun.
  void end(Thread& thread);
  /// Forgets the call, and opens the gate if this thread keeps it closed.
  void release();

  /// The filters in force after a call, compared with those before it.
  enum class Outcome : unsigned char {
    kSame,       ///< The call has failed or was not made.
    kInstalled,  ///< The filter that was read is in force.
    kUnknown,    ///< There may be filters that were not read.
  };
  /// @param is_read the call's filter could be read
  /// @param before,now number of filters in force; nullopt if the kernel does not tell
  [[nodiscard]] static Outcome outcome(bool is_read, std::optional<int> before,
                                       std::optional<int> now);

 private:
  struct Call {
    std::optional<SeccompFilter> filter;  ///< nullopt if its memory cannot be read.
    std::optional<int> before;            ///< Number of filters in force before the call.
  };
  void close_gate(bool on);

  Process& process_;
  DisableSpace disable_;
  std::optional<Call> call_;
  LimitedWait wait_;
  bool closes_gate_ = false;
};

}  // namespace backtrail::tracee::cache
