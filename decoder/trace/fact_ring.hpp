// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The newest facts of one thread: recorded values, and code; and since when memory was constant.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <span>
#include <unordered_set>
#include <vector>

#include "arch/base/page.hpp"
#include "decoder/trace/constant_memory.hpp"
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
      ValueFact numbered = fact;
      numbered.record = end - 1 - fact.record;
      constant_.take(numbered);
      if (arch::is_of_memory(fact.kind)) continue;
      facts_.push_back(numbered);
      if (is_value(fact)) ++values_;
    }
    for (; facts_.size() > kMost; facts_.pop_front()) {
      if (is_value(facts_.front())) --values_;
    }
  }
  void clear() {
    facts_.clear();
    values_ = 0;
    constant_.clear();
  }
  /// Returns the facts from record `first` on, oldest first, by the numbers of their records. What
  /// older ones tell of memory is told by that record. Code is left out where constant memory tells
  /// as much.
  [[nodiscard]] std::deque<ValueFact> since(std::uint64_t first) const {
    std::vector<ValueFact> memory = constant_.facts();
    for (ValueFact& fact : memory) {
      if (fact.record >= first) break;
      const bool is_constant = fact.kind == arch::kBecomesConstantKind;
      fact = {first, fact.pc, fact.value, is_constant ? arch::kConstantKind : fact.kind};
    }
    const auto oldest = std::ranges::lower_bound(facts_, first, {}, &ValueFact::record);
    const std::unordered_set<std::uint64_t> pages = changed_pages(oldest);
    std::deque<ValueFact> others;
    std::copy_if(oldest, facts_.end(), std::back_inserter(others), [&](const ValueFact& fact) {
      if (!arch::is_of_code(fact.kind)) return true;
      return fact.kind == arch::kCodeKind ? !pages.empty() : pages.contains(page_of(fact));
    });
    std::deque<ValueFact> out;
    std::merge(memory.begin(), memory.end(), others.begin(), others.end(), std::back_inserter(out),
               [](const ValueFact& a, const ValueFact& b) { return a.record < b.record; });
    return out;
  }
  /// Returns how many of them are recorded values.
  [[nodiscard]] std::size_t values() const { return values_; }

 private:
  static std::uint64_t page_of(const ValueFact& fact) { return fact.pc.value() / kPageBytes; }
  /// Returns the numbers of the pages with code that is told and was not in constant memory.
  [[nodiscard]] std::unordered_set<std::uint64_t> changed_pages(
      std::deque<ValueFact>::const_iterator oldest) const {
    std::unordered_set<std::uint64_t> pages;
    for (; oldest != facts_.end(); ++oldest) {
      if (!arch::is_of_code(oldest->kind) || oldest->kind == arch::kCodeKind) continue;
      const std::uint64_t bytes = std::uint64_t{oldest->kind} - arch::kCodeKind;
      const bool is_constant = constant_.bytes_at(oldest->record, oldest->pc, bytes) == bytes;
      if (!is_constant) pages.insert(page_of(*oldest));
    }
    return pages;
  }
  static bool is_value(const ValueFact& fact) { return !arch::is_of_code(fact.kind); }

  std::deque<ValueFact> facts_;
  ConstantMemory constant_;
  std::size_t values_ = 0;
};

}  // namespace backtrail::decoder
