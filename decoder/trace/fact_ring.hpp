// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The newest recorded values of one thread.

#include <cstddef>
#include <deque>
#include <span>

#include "decoder/trace/value_fact.hpp"

namespace backtrail::decoder {

class FactRing {
 public:
  /// Most facts that are kept. Past values are recovered for the newest million instructions, of
  /// which less than half record a value.
  static constexpr std::size_t kMost = 1UL << 19;

  /// Appends facts. `end` is the number of records received so far.
  void append(std::span<const ValueFact> facts, std::uint64_t end) {
    for (const ValueFact& fact : facts) {
      if (fact.record >= end) continue;
      facts_.push_back(fact);
      facts_.back().record = end - 1 - fact.record;
    }
    while (facts_.size() > kMost) facts_.pop_front();
  }
  void clear() { facts_.clear(); }
  /// Returns the facts, oldest first, by the numbers of their records.
  [[nodiscard]] const std::deque<ValueFact>& all() const { return facts_; }

 private:
  std::deque<ValueFact> facts_;
};

}  // namespace backtrail::decoder
