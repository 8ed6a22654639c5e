#pragma once
/// @file
/// The log of a thread that logs much. What a ring holds is copied away each time it is full; here
/// the thread goes from segment to segment, and its history stays where it was written.

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
  /// With room for a history of so many bytes, at least. The thread is as RemoteCalls::begin()
  /// wants it. Errors: kBusy (other threads have the memory, there is not as much, or the history
  /// is so short that copies do as well), those of RemoteCalls.
  static Result<std::unique_ptr<BusyLog>> begin(CacheSpace& space, Thread& thread,
                                                std::uint64_t history_bytes);
  ~BusyLog();
  BusyLog(const BusyLog&) = delete;
  BusyLog& operator=(const BusyLog&) = delete;

  /// What may be written.
  [[nodiscard]] const LogRange& rest() const { return rest_; }
  /// It was written until there. When little is left, the oldest segment is the rest.
  /// Returns whether that is so: then nothing may be read there any more.
  bool use_up(TraceeAddr log);
  /// The memory of the rest is there from now on. The thread is as for begin().
  void commit(Thread& thread) const;
  /// Likewise of what comes behind it, as far as that goes while the thread runs.
  void prepare_next() const;

 private:
  BusyLog(CacheSpace& space, std::size_t area, std::size_t segments);

  CacheSpace& space_;
  std::size_t area_;
  std::size_t segments_;
  std::size_t now_ = 0;
  LogRange rest_;
};

}  // namespace backtrail::tracee::cache
