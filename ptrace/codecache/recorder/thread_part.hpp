// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One thread's part of its process's cache space.

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "arch/base/result.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/recorder/forced_signals.hpp"
#include "ptrace/codecache/space/cache_space.hpp"

namespace backtrail::tracee::cache {

/// Empty until take(), and again after give_back(). The other functions need one that is not empty,
/// unless stated otherwise.
class ThreadPart {
 public:
  ThreadPart() = default;
  ~ThreadPart() { give_back(); }
  ThreadPart(const ThreadPart&) = delete;
  ThreadPart& operator=(const ThreadPart&) = delete;

  /// Takes a part for the thread. Errors: those of ThreadParts::take().
  Result<void> take(std::shared_ptr<CacheSpace> space, Thread& thread);
  /// May be empty.
  void give_back();

  [[nodiscard]] explicit operator bool() const { return space_ != nullptr; }
  [[nodiscard]] CacheSpace& space() const { return *space_; }
  [[nodiscard]] ThreadMemory& memory() { return *memory_; }
  [[nodiscard]] std::size_t slot() const { return slot_; }

  /// Notes that the thread enters or has left translated code.
  void set_inside(bool inside);
  /// False if empty.
  [[nodiscard]] bool inside() const { return inside_; }
  /// Call for a thread that has stopped in translated code.
  [[nodiscard]] ForcedSignals forced_signals() const { return {*space_, *memory_, slot_}; }

 private:
  std::shared_ptr<CacheSpace> space_;
  std::optional<ThreadMemory> memory_;
  std::size_t slot_ = 0;
  bool inside_ = false;
};

}  // namespace backtrail::tracee::cache
