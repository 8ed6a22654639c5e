// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The log of a thread that logs much. A thread part's log is copied when it is full; a busy log
/// goes from segment to segment of an area, and its history stays where it was written.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "arch/base/result.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"

namespace backtrail::tracee {
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CacheSpace;

class BusyLog {
 public:
  /// Begins a busy log with room for a history of at least `history_bytes`. The thread must be in a
  /// stop as RemoteCalls::begin() requires. Errors: kBusy (other threads have the memory, there is
  /// not enough, or the history is so short that copying is as good), those of RemoteCalls.
  static Result<std::unique_ptr<BusyLog>> begin(CacheSpace& space, Thread& thread,
                                                std::uint64_t history_bytes);
  ~BusyLog();
  BusyLog(const BusyLog&) = delete;
  BusyLog& operator=(const BusyLog&) = delete;

  /// Returns the part of the current segment that is still to be written.
  [[nodiscard]] const LogRange& rest() const { return rest_; }
  /// Call when the log has been written up to `log`. If little is left, the oldest segment becomes
  /// the rest. Returns true in that case: nothing in that segment may be read any more.
  bool use_up(TraceeAddr log);
  /// Populates the memory of the rest. The thread must be stopped as for begin().
  void commit(Thread& thread) const;
  /// Populates a part of the next segment while the thread runs. Returns false if nothing is left
  /// to do.
  [[nodiscard]] bool prepare_next() const;

 private:
  BusyLog(CacheSpace& space, std::size_t area, std::size_t segments);

  CacheSpace& space_;
  std::size_t area_;
  std::size_t segments_;
  std::size_t now_ = 0;
  LogRange rest_;
};

}  // namespace backtrail::tracee::cache
