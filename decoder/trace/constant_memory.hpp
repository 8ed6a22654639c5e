// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Since when memory has been what it is at the end, where a thread's trace tells that.

#include <cstdint>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/range_map.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::decoder {

/// Made of the facts of memory (arch::is_of_memory) of one thread, in their order.
class ConstantMemory {
 public:
  /// Most ranges that are kept. Memory in no range is not known to be constant.
  static constexpr std::size_t kMost = 16384;

  /// Takes a fact, with the number of its record. Others than those of memory are ignored.
  void take(const ValueFact& fact);
  void clear() { *this = {}; }
  /// Returns true if any fact was taken. Of traces without them nothing is known here.
  [[nodiscard]] bool is_told() const { return is_told_; }
  /// Returns how many of the `most` bytes from `address` on have been what they are at the end in
  /// all of the block that begins with a record, and ever since.
  [[nodiscard]] std::uint64_t bytes_at(std::uint64_t record, TraceeAddr address,
                                       std::uint64_t most) const;
  /// Returns facts that tell what this object has been told, by their records.
  [[nodiscard]] std::vector<ValueFact> facts() const;

 private:
  struct Since {
    std::uint64_t record = 0;
    arch::ValueKind kind = 0;
  };

  RangeMap<Since> ranges_;
  /// The range found last: most addresses are near the one before.
  mutable TraceeAddr last_begin_;
  mutable RangeMap<Since>::Rest last_{};
  bool is_told_ = false;
};

}  // namespace backtrail::decoder
