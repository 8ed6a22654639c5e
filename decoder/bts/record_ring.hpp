#pragma once
/// @file
/// The last N records, in memory that is taken as they come.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// A ring in history mode: when it is full the oldest records are overwritten.
///
/// A record's number counts from the first one ever appended and never changes:
///
///     0 ........ begin() ................ end()
///     forgotten  |  kept, at(number)      |  to come
class RecordRing {
 public:
  /// @param capacity In records; at least one is kept.
  explicit RecordRing(std::uint64_t capacity);

  void append(std::span<const Record> records);
  /// Forgets everything; numbers go on.
  void clear();

  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] std::uint64_t size() const { return end_ - begin_; }
  /// The record of that number, begin() <= number < end().
  [[nodiscard]] const Record& at(std::uint64_t number) const;
  /// Records lost to the ring's size so far.
  [[nodiscard]] std::uint64_t overwritten() const { return overwritten_; }

 private:
  static constexpr std::uint64_t kChunkRecords = 4096;
  /// Reserved whole, filled as they come: of memory that is cleared in advance a thousand threads
  /// with a few records each would have 100 MB.
  using Chunk = std::vector<Record>;

  std::uint64_t capacity_;
  std::vector<Chunk> chunks_;  // slot s lies in chunk s / kChunkRecords
  std::uint64_t base_ = 0;     // the number that lies in slot 0
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t overwritten_ = 0;
};

}  // namespace backtrail::decoder
