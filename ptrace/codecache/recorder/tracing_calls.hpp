// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls of programs that trace others: debuggers, strace, crash handlers.

#include <cstdint>

#include <sys/types.h>

#include "arch/cpu/registers.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Recognises one thread's requests to trace a process that the server traces.
class TracingCalls {
 public:
  explicit TracingCalls(Process& process) : process_{process} {}

  enum class Found : std::uint8_t {
    kNone,     ///< The next instruction requests nothing of that kind.
    kRequest,  ///< Another process is to trace one of the server's: see request().
    kMade,  ///< The thread has asked its parent, the server, to trace it. The thread has returned
            ///< from that call without making it.
  };
  /// Call before the thread executes an instruction.
  Found begin(Thread& thread);
  /// The thread, by the server's id, that another process is to trace; 0: none.
  [[nodiscard]] pid_t request() const { return request_; }
  void forget() { request_ = 0; }

 private:
  /// Makes the call succeed without being made.
  bool let_trace_itself(Thread& thread, const arch::cpu::UserRegs& regs);

  Process& process_;
  pid_t request_ = 0;
};

}  // namespace backtrail::tracee::cache
