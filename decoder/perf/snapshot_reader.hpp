// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds the new data in an area that the hardware overwrites endlessly.

#include <cstdint>
#include <span>
#include <vector>

namespace backtrail::decoder::perf {

struct SnapshotNews {
  std::vector<std::uint8_t> bytes;  ///< Oldest first.
  bool lost = false;                ///< An unknown amount before them was overwritten unread.
};

/// The area's head is an offset and does not tell how often it went round. A comparison with a copy
/// from the last look does.
class SnapshotReader {
 public:
  /// `unit` is the record size, of which the head is a multiple; 1 for a byte stream.
  explicit SnapshotReader(std::uint64_t unit) : unit_{unit} {}
  /// Returns the data since the last look. The hardware must be stopped, otherwise bytes at the
  /// head are torn.
  SnapshotNews look(std::span<const std::uint8_t> area, std::uint64_t head);

 private:
  std::uint64_t unit_;
  std::vector<std::uint8_t> seen_;
  std::uint64_t head_ = 0;
  bool wrapped_ = false;
};

}  // namespace backtrail::decoder::perf
