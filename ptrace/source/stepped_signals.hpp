// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Signals of a stepped thread, which come faster than steps: its slices (SignalSlice) begin and
/// end here, and are hidden from its system calls and handlers.

#include <cstdint>
#include <optional>

#include "arch/base/address.hpp"
#include "ptrace/source/signal_slice.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

class SteppedSignals {
 public:
  explicit SteppedSignals(Process& process) : process_{process} {}

  /// Call before a step.
  /// @param signal The signal to be delivered, 0: none.
  /// @param is_call The next instruction is a system call.
  void begin_step(Thread& thread, int signal, bool is_call);
  /// Call after a step that executed its instruction.
  void end_step(Thread& thread);
  /// Call when the thread has entered a handler.
  void handler_entered(Thread& thread);
  /// Ends a slice before a stop is reported.
  void end_slice(Thread& thread);
  [[nodiscard]] SignalSlice& slice() { return slice_; }
  [[nodiscard]] const SignalSlice& slice() const { return slice_; }
  /// As BranchSource::stop_due().
  [[nodiscard]] std::optional<SignalSlice::Clock::time_point> stop_due() const;

 private:
  /// The system call being stepped over, if it concerns signals.
  struct Call {
    std::uint64_t number = 0;
    std::uint64_t how = 0;
    std::optional<std::uint64_t> set;  ///< Argument of rt_sigprocmask.
    TraceeAddr shown_at;  ///< Address at which the call shows signals to the program; 0: none.
  };

  void begin_call(Thread& thread);
  void handler_returned(Thread& thread);

  Process& process_;
  SignalSlice slice_;
  std::optional<Call> call_;
};

}  // namespace backtrail::tracee
