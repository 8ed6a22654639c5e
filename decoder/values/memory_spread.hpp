// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges bits between accesses to the same bytes.

#include <cstdint>

#include "decoder/values/value_queue.hpp"
#include "decoder/values/window_memory.hpp"

namespace backtrail::decoder::values {

class MemorySpread {
 public:
  /// Borrows all three.
  MemorySpread(const ValueGraph& graph, WindowMemory& memory, ValueQueue& queue)
      : graph_{graph}, memory_{memory}, queue_{queue} {}

  /// Spreads the bits of an access whose place is kListed, and to it.
  void spread(std::uint32_t access);
  /// Lets a load from constant memory take what is there.
  void take_constant(std::uint32_t access);
  /// Looks again at the loads of what a range store has filled.
  void spread_fill(std::uint32_t access);

 private:
  void forwards(std::uint32_t access, std::uint64_t granule);
  void backwards(std::uint32_t access, std::uint64_t granule);
  void exchange(std::uint32_t one, std::uint32_t other, std::uint64_t granule, std::uint64_t bits);
  void take(std::uint32_t access, std::uint64_t granule, Known what, std::uint64_t bits);

  const ValueGraph& graph_;
  WindowMemory& memory_;
  ValueQueue& queue_;
};

}  // namespace backtrail::decoder::values
