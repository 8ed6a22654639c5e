// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The values that one thread's translated code records: taken at stops and when their memory is
/// full.

#include <cstddef>
#include <cstdint>

#include "decoder/cachelog/value_stream.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/memory/value_logs.hpp"

namespace backtrail::tracee::cache {

/// Slot::kValues points to where the next value goes. When it comes to the guard page, the thread
/// goes on in its other range. The values stay where they were written until that is filled again.
class ValueLog {
 public:
  /// Begins in the first range. `memory` is the thread's part, borrowed.
  ValueLog(ThreadMemory& memory, const ValueRanges& ranges);

  /// Call when the thread leaves a superblock that has stored this many values after next(): they
  /// count from now on.
  void count(std::size_t values);
  /// Takes the values of the stopped thread.
  void take(decoder::ValueStream& values);
  /// Address of the guard page that the thread comes to next.
  [[nodiscard]] TraceeAddr end() const { return ranges_.at(now_).end; }
  /// Address of the next value of the stopped thread.
  [[nodiscard]] TraceeAddr next() const;
  /// Call when the thread has faulted at end(): takes the values, and moves those that it had
  /// stored after next() to the other range. Returns where that begins.
  TraceeAddr go_on(decoder::ValueStream& values);

 private:
  ThreadMemory& memory_;
  ValueRanges ranges_;
  std::size_t now_ = 0;
  TraceeAddr taken_;  ///< Values up to there were taken.
};

}  // namespace backtrail::tracee::cache
