// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells the threads of an address space which memory changes with mappings alone, and since when.

#include <cstdint>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/range_map.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::tracee::cache {

/// The ranges are those of ExecutableMap::constant(), as long as no call changes them. Each thread
/// is told in facts of memory (arch::is_of_memory), at places of its own: a range is told to be
/// constant where all that the thread executed before it was is in its log.
class ConstantRanges {
 public:
  using Range = std::pair<TraceeAddr, TraceeAddr>;

  /// Call before and after [begin, end) may change.
  void lose(TraceeAddr begin, TraceeAddr end);
  /// Call with all ranges that change with mappings alone now.
  void set(const std::vector<Range>& ranges);
  /// Returns true if a part of [begin, end) is constant.
  [[nodiscard]] bool overlaps(TraceeAddr begin, TraceeAddr end) const {
    return constant_.overlaps(begin, end);
  }

  /// How much a thread has been told.
  struct Told {
    std::uint64_t changes = 0;  ///< Number of the first change that it was not told.
  };
  /// Returns true if tell() has something new for the thread.
  [[nodiscard]] bool has_news(const Told& told) const {
    return told.changes < first_ + changes_.size();
  }
  /// Returns facts for a thread that has been told so much, and notes that it is told.
  /// @param kind  Of the facts about constant memory.
  std::vector<decoder::ValueFact> tell(Told& told, arch::ValueKind kind) const;
  /// Returns facts of all that is constant, for consumers that were not told of it.
  [[nodiscard]] std::vector<decoder::ValueFact> all(arch::ValueKind kind) const;
  /// As tell(), but only of memory that is not constant any more, of which tell() tells again.
  [[nodiscard]] std::vector<decoder::ValueFact> tell_lost(const Told& told) const;

 private:
  struct Change {
    Range range;
    bool is_constant = false;
  };
  void note(const Range& range, bool is_constant);

  struct Nothing {};
  RangeMap<Nothing> constant_;
  std::vector<Change> changes_;
  /// Number of the first change in changes_. Whoever was told less is told everything anew.
  std::uint64_t first_ = 1;
};

}  // namespace backtrail::tracee::cache
