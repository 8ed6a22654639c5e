// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Interface to numbered records, independent of where they are stored.

#include <cstdint>
#include <utility>
#include <vector>

#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// Records of one thread, oldest first. Numbers stay valid while the sequence exists.
class RecordSequence {
 public:
  virtual ~RecordSequence() = default;
  /// Number of the oldest record.
  [[nodiscard]] virtual std::uint64_t begin() const = 0;
  /// One more than the number of the newest record; begin() if there is none.
  [[nodiscard]] virtual std::uint64_t end() const = 0;
  /// Returns the record `number`, begin() <= number < end(). An unreadable record is returned as a
  /// gap of reason kOverflow.
  virtual Record at(std::uint64_t number) = 0;
};

/// Records in memory.
class VectorRecords final : public RecordSequence {
 public:
  explicit VectorRecords(std::vector<Record> records) : records_{std::move(records)} {}
  [[nodiscard]] std::uint64_t begin() const override { return 0; }
  [[nodiscard]] std::uint64_t end() const override { return records_.size(); }
  Record at(std::uint64_t number) override { return records_[number]; }

 private:
  std::vector<Record> records_;
};

}  // namespace backtrail::decoder
