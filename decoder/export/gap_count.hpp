#pragma once
/// @file
/// What is missing in an exported trace.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// Looks at all records of a thread, oldest first. That the trace begins is no gap.
class GapCount {
 public:
  struct Gap {
    Record record;
    std::uint64_t position = 0;  ///< So many records up to it, and it.
  };

  void see(std::span<const Record> records);
  [[nodiscard]] const std::vector<Gap>& gaps() const { return gaps_; }
  /// Branches that are known to be missing in them.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// "" without gaps; else " (2 gaps, 4711 branches missing)", for a thread's title.
  [[nodiscard]] std::string title() const;

 private:
  std::uint64_t records_ = 0;
  std::uint64_t lost_ = 0;
  bool is_exact_ = true;
  std::vector<Gap> gaps_;
};

}  // namespace backtrail::decoder
