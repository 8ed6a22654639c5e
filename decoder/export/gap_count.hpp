// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Counts what is missing in an exported trace.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// Examines all records of a thread, oldest first. The gap that begins every trace does not count.
class GapCount {
 public:
  struct Gap {
    Record record;
    std::uint64_t position = 0;  ///< Number of records up to and including the gap.
  };

  void see(std::span<const Record> records);
  [[nodiscard]] const std::vector<Gap>& gaps() const { return gaps_; }
  /// Returns the number of branches known to be missing.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// Returns " (2 gaps, 4711 branches missing)" for a thread's title; "" without gaps.
  [[nodiscard]] std::string title() const;

 private:
  std::uint64_t records_ = 0;
  std::uint64_t lost_ = 0;
  bool is_exact_ = true;
  std::vector<Gap> gaps_;
};

}  // namespace backtrail::decoder
