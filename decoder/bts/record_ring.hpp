// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps the last N records; memory is allocated as they arrive.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// A ring in history mode: when it is full, the oldest records are overwritten.
///
/// A record's number counts from the first one ever appended and never changes:
///
///     0 ........ begin() ................ end()
///     forgotten  |  kept, at(number)      |  to come
class RecordRing {
 public:
  /// @param capacity  In records; at least one is kept.
  explicit RecordRing(std::uint64_t capacity);

  void append(std::span<const Record> records);
  /// Drops all records; numbers continue.
  void clear();
  /// Forgets all but the newest `count`; numbers stay. The memory of the others is given back.
  void keep_newest(std::uint64_t count);

  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] std::uint64_t size() const { return end_ - begin_; }
  /// Returns the record with that number; begin() <= number < end().
  [[nodiscard]] const Record& at(std::uint64_t number) const;
  /// Returns the number of records overwritten so far.
  [[nodiscard]] std::uint64_t overwritten() const { return overwritten_; }
  /// Returns how many of the records before begin() are gaps: no branches.
  [[nodiscard]] std::uint64_t gaps_before() const { return gaps_before_; }

 private:
  static constexpr std::uint64_t kChunkRecords = 4096;
  /// Reserved whole but filled as records arrive: zeroed memory would cost 100 MB for a thousand
  /// threads with a few records each.
  using Chunk = std::vector<Record>;

  std::uint64_t capacity_;
  std::vector<Chunk> chunks_;  // Slot s lies in chunk s / kChunkRecords.
  std::uint64_t base_ = 0;     // Number of the record in slot 0.
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t overwritten_ = 0;
  std::uint64_t gaps_before_ = 0;
};

}  // namespace backtrail::decoder
