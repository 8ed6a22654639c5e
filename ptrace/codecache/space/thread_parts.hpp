// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Thread parts of the recorder's memory: which are taken, and by threads inside translated code.

#include <bitset>
#include <cstddef>
#include <optional>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class ThreadParts {
 public:
  /// Borrows both. `process` owns the memory, whose first thread part is as CacheMemory::create()
  /// left it.
  ThreadParts(const Process& process, CacheMemory& memory) : process_{process}, memory_{memory} {}

  /// Takes a thread part; returns its index. Error kBusy if all are taken.
  Result<std::size_t> take(Thread& thread);
  void give_back(std::size_t slot);
  /// Returns true if any is taken.
  [[nodiscard]] bool used() const { return taken_.any(); }

  /// Takes an area for a busy log. Errors: those of CacheMemory::add_area().
  Result<std::size_t> take_area(Thread& thread);
  void give_area_back(std::size_t area) { free_areas_.push_back(area); }

  /// Notes that a thread enters or has left translated code.
  void set_inside(std::size_t slot, bool inside) { inside_.set(slot, inside); }
  [[nodiscard]] bool anybody_inside() const { return inside_.any(); }

  /// From now on threads stop by a fault instead of a trap, because a filter forbids the call
  /// before the trap.
  void stop_by_fault();

 private:
  /// Writes the thread's ids as the program sees them, for signals that it sends itself.
  Result<void> write_ids(Thread& thread, ThreadMemory memory);
  void note_way_to_stop(std::size_t slot);

  const Process& process_;
  CacheMemory& memory_;
  std::bitset<kMaxThreads> taken_;
  std::bitset<kMaxThreads> inside_;
  std::vector<std::size_t> free_areas_;
  std::optional<bool> same_ids_;  ///< The program sees the same ids as the server.
  bool first_is_ready_ = true;
  bool stop_by_fault_ = false;
};

}  // namespace backtrail::tracee::cache
