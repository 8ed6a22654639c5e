#pragma once
/// @file
/// What is new in an area that the hardware overwrites for ever, between two looks at it.

#include <cstdint>
#include <span>
#include <vector>

namespace backtrail::decoder::perf {

struct SnapshotNews {
  std::vector<std::uint8_t> bytes;  ///< Oldest first.
  bool lost = false;  ///< Something before them was overwritten unread; nobody counts.
};

/// The area's head is an offset, so how often it went round is not told: it is found by comparing
/// with a copy of what was there at the last look.
class SnapshotReader {
 public:
  /// `unit`: the size of a record, on whose grid the head moves; 1 for a stream of bytes.
  explicit SnapshotReader(std::uint64_t unit) : unit_{unit} {}
  /// The hardware must have been stopped, or the bytes around the head are torn.
  SnapshotNews look(std::span<const std::uint8_t> area, std::uint64_t head);

 private:
  std::uint64_t unit_;
  std::vector<std::uint8_t> seen_;
  std::uint64_t head_ = 0;
  bool wrapped_ = false;
};

}  // namespace backtrail::decoder::perf
