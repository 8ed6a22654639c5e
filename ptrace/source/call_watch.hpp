// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Interface to a listener that sees every system call of one recorded thread.

#include <vector>

#include "arch/base/address.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::tracee {

class Thread;

class CallWatch {
 public:
  CallWatch() = default;
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;
  virtual ~CallWatch() = default;
  /// Call before the stopped thread executes a system call, of any kind.
  virtual void begin(Thread& thread) = 0;
  /// Call at the thread's next stop.
  virtual void end(Thread& thread) = 0;
  /// Call when the thread has run natively, so that it may have made system calls.
  virtual void ran_unseen() {}

  /// Returns facts of the memory of a stepped thread (arch::is_of_memory) that have not been
  /// returned before.
  /// @param kind  Of facts about constant memory.
  virtual std::vector<decoder::ValueFact> tell_memory(arch::ValueKind kind) {
    (void)kind;
    return {};
  }
  /// Returns facts of all constant memory, for consumers that lack older ones.
  virtual std::vector<decoder::ValueFact> tell_all_memory() { return {}; }
  /// The facts returned so far were lost, or are of another program.
  virtual void forget_told() {}
  /// The debugger wrote code in [begin, end).
  virtual void code_written(TraceeAddr begin, TraceeAddr end) { (void)begin, (void)end; }
};

}  // namespace backtrail::tracee
