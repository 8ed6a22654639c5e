// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Values around the system calls that a thread makes natively.

#include <optional>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::tracee {
class Thread;
}

namespace backtrail::tracee::cache {

/// Facts for CacheLog::add_facts(): the number and arguments of a call, and its result.
class CallFacts {
 public:
  /// Call when a stopped thread is about to make a call. Returns the facts before it.
  [[nodiscard]] std::vector<decoder::ValueFact> begin(const arch::cpu::UserRegs& regs);
  /// Call at the thread's next stop. Returns the facts after the call; none if it has not returned
  /// to the next instruction, or will be repeated.
  [[nodiscard]] std::vector<decoder::ValueFact> end(Thread& thread);
  void forget() { returns_to_.reset(); }

 private:
  std::optional<TraceeAddr> returns_to_;
};

}  // namespace backtrail::tracee::cache
