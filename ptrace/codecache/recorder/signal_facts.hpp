// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Values around the delivery of signals.

#include <optional>
#include <vector>

#include "arch/cpu/registers.hpp"
#include "decoder/trace/record.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::tracee {
class Thread;
}

namespace backtrail::tracee::cache {

/// Facts for CacheLog::add_facts(): the registers of the code that a signal interrupts, and those
/// that its handler begins with.
class SignalFacts {
 public:
  /// Call when a stopped thread is about to get a signal, after forget().
  void begin(Thread& thread);
  /// Call at the thread's next stop, before its record is made.
  void stop(Thread& thread);
  /// Returns true if a record of an asynchronous transfer may be that of the signal.
  [[nodiscard]] bool waits() const { return before_ && after_; }
  /// Returns the facts before that record, and after it.
  [[nodiscard]] std::vector<decoder::ValueFact> before(const decoder::Record& delivery) const;
  [[nodiscard]] std::vector<decoder::ValueFact> after(const decoder::Record& delivery);
  /// Call before a thread goes on: what it was before does not matter any more.
  void forget();

 private:
  std::optional<arch::cpu::UserRegs> before_;
  std::optional<arch::cpu::UserRegs> after_;
  bool in_call_ = false;  ///< The kernel may replace the call's result.
};

}  // namespace backtrail::tracee::cache
