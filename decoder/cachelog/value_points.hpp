// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What superblocks record besides their exits.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {

/// A value that a superblock records before an instruction.
struct LoggedValue {
  std::int32_t pc = 0;       ///< Relative to the superblock's start pc.
  std::uint16_t passed = 0;  ///< The superblock's branches taken before it.
  arch::ValueKind kind = 0;
  std::uint8_t unused = 0;
};

/// The values of all superblocks, by their number in the ExitTable. Grows only.
class ValuePoints {
 public:
  /// Values of the superblocks with the lowest numbers, in borrowed memory. All parts are empty if
  /// none are recorded.
  struct Base {
    std::span<const LoggedValue> values;
    std::span<const std::uint32_t> first;   ///< By superblock: the index of its first value.
    std::span<const std::uint16_t> counts;  ///< By exit id.
  };
  ValuePoints() = default;
  /// Continues `base`.
  explicit ValuePoints(const Base& base) : base_{base} {}

  /// Adds the values of a superblock, in order. Superblocks that were added before have lower
  /// numbers.
  void add_block(std::uint32_t block, std::span<const LoggedValue> values) {
    first_.resize(block + 1UL - base_.first.size(), static_cast<std::uint32_t>(size()));
    values_.insert(values_.end(), values.begin(), values.end());
  }
  /// Adds how many of its superblock's values come before an exit. Exits that were added before
  /// have lower ids.
  void add_exit(std::uint32_t exit_id, std::uint16_t values) {
    counts_.resize(exit_id - base_.counts.size(), 0);
    counts_.push_back(values);
  }
  [[nodiscard]] std::span<const LoggedValue> of_block(std::uint32_t block) const {
    const std::size_t begin = first_of(block);
    const std::size_t end = first_of(block + 1UL);
    const std::size_t before = base_.values.size();
    return begin < before ? base_.values.subspan(begin, end - begin)
                          : std::span{values_}.subspan(begin - before, end - begin);
  }
  /// Returns the index of a superblock's first value among those of all superblocks.
  [[nodiscard]] std::size_t first_of(std::size_t block) const {
    const std::size_t before = base_.first.size();
    if (block < before) return base_.first[block];
    return block - before < first_.size() ? first_[block - before] : size();
  }
  [[nodiscard]] std::uint16_t before_exit(std::uint32_t exit_id) const {
    const std::size_t before = base_.counts.size();
    if (exit_id < before) return base_.counts[exit_id];
    return exit_id - before < counts_.size() ? counts_[exit_id - before] : std::uint16_t{0};
  }
  /// Returns the number of all values.
  [[nodiscard]] std::size_t size() const { return base_.values.size() + values_.size(); }
  /// Returns what was added, in a form that continues the base; valid until more is added.
  [[nodiscard]] Base added() const { return {values_, first_, counts_}; }

 private:
  Base base_;
  std::vector<LoggedValue> values_;
  std::vector<std::uint32_t> first_;   ///< By superblock: the index of its first value.
  std::vector<std::uint16_t> counts_;  ///< By exit id.
};

}  // namespace backtrail::decoder
