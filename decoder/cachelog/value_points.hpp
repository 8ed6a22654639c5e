// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What superblocks record besides their exits.

#include <cstdint>
#include <span>
#include <vector>

namespace backtrail::decoder {

/// A value that a superblock records, of a register before an instruction.
struct LoggedValue {
  std::int32_t pc = 0;       ///< Relative to the superblock's start pc.
  std::uint16_t passed = 0;  ///< The superblock's branches taken before it.
  std::uint8_t reg = 0;      ///< A general register, by its encoding.
};

/// The values of all superblocks, by their number in the ExitTable. Grows only.
class ValuePoints {
 public:
  /// Adds the values of a superblock, in order. Superblocks that were added before have lower
  /// numbers.
  void add_block(std::uint32_t block, std::span<const LoggedValue> values) {
    first_.resize(block + 1UL, static_cast<std::uint32_t>(values_.size()));
    values_.insert(values_.end(), values.begin(), values.end());
  }
  /// Adds how many of its superblock's values come before an exit. Exits that were added before
  /// have lower ids.
  void add_exit(std::uint32_t exit_id, std::uint16_t values) {
    counts_.resize(exit_id, 0);
    counts_.push_back(values);
  }
  [[nodiscard]] std::span<const LoggedValue> of_block(std::uint32_t block) const {
    if (block >= first_.size()) return {};
    const std::size_t begin = first_[block];
    const std::size_t end = block + 1UL < first_.size() ? first_[block + 1UL] : values_.size();
    return std::span{values_}.subspan(begin, end - begin);
  }
  [[nodiscard]] std::uint16_t before_exit(std::uint32_t exit_id) const {
    return exit_id < counts_.size() ? counts_[exit_id] : std::uint16_t{0};
  }

 private:
  std::vector<LoggedValue> values_;
  std::vector<std::uint32_t> first_;   ///< By superblock: the index of its first value.
  std::vector<std::uint16_t> counts_;  ///< By exit id.
};

}  // namespace backtrail::decoder
