// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// When a thread may run translated code.

#include <string>

#include "arch/cpu/registers.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class ThreadPart;

/// Returns true if the thread can make system calls for the server from the stop that it is in.
[[nodiscard]] bool is_plain_stop(Thread& thread);

/// The conditions for one thread. Some of them change from stop to stop; once the thread is
/// disabled, it is stepped for good.
class EntryConditions {
 public:
  /// Borrows both.
  EntryConditions(Process& process, const ThreadPart& part) : process_{process}, part_{part} {}

  /// Disables translated code for the thread. Only the first reason counts.
  void disable(std::string why);
  /// Empty unless disabled.
  [[nodiscard]] const std::string& why_disabled() const { return why_disabled_; }
  /// Returns true if the thread will not run translated code as long as it runs this program.
  [[nodiscard]] bool excludes_for_good() const;
  /// Returns true if the thread, which has stopped with these native registers, may run translated
  /// code from there if there is any.
  [[nodiscard]] bool allows(Thread& thread, const arch::cpu::UserRegs& regs) const;

 private:
  Process& process_;
  const ThreadPart& part_;
  std::string why_disabled_;
};

}  // namespace backtrail::tracee::cache
