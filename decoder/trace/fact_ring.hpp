// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The newest facts of one thread: recorded values, and code.

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
      if (is_value(fact)) ++values_;
    }
    for (; facts_.size() > kMost; facts_.pop_front()) {
      if (is_value(facts_.front())) --values_;
    }
  }
  void clear() {
    facts_.clear();
    values_ = 0;
  }
  /// Returns the facts, oldest first, by the numbers of their records.
  [[nodiscard]] const std::deque<ValueFact>& all() const { return facts_; }
  /// Returns how many of them are recorded values.
  [[nodiscard]] std::size_t values() const { return values_; }

 private:
  static bool is_value(const ValueFact& fact) { return !arch::is_of_code(fact.kind); }

  std::deque<ValueFact> facts_;
  std::size_t values_ = 0;
};

}  // namespace backtrail::decoder
