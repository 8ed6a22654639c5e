// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The records of one thread of a crash file, unpacked on demand.

#include <array>
#include <cstdint>
#include <vector>

#include "decoder/corefile/trace_archive.hpp"
#include "decoder/past/record_sequence.hpp"

namespace backtrail::decoder {

/// Keeps a few unpacked blocks, so that even a long trace needs little memory.
class ArchiveRecords final : public RecordSequence {
 public:
  /// @param thread Borrowed; its blocks must be in order.
  explicit ArchiveRecords(const TraceArchive::Thread& thread);

  [[nodiscard]] std::uint64_t begin() const override { return 0; }
  [[nodiscard]] std::uint64_t end() const override {
    return starts_.back() + (misses_end_ ? 1U : 0U);
  }
  Record at(std::uint64_t number) override;
  /// Returns these facts with the numbers that their records have here. Values of records that the
  /// file lacks are left out; code and memory of such records get the number of the next record.
  [[nodiscard]] std::vector<ValueFact> numbered(std::vector<ValueFact> facts) const;

 private:
  struct Unpacked {
    std::size_t block = ~std::size_t{0};
    std::uint64_t used = 0;  ///< Value of `clock_` at the last use.
    std::vector<Record> records;
  };
  Unpacked& unpacked(std::size_t block);
  [[nodiscard]] bool follows_a_loss(std::size_t block) const;

  const TraceArchive::Thread& thread_;
  bool misses_end_ = false;            ///< A gap follows the newest record in the file.
  std::vector<std::uint64_t> starts_;  ///< Number of each block's first record, then the end.
  std::array<Unpacked, 4> cache_;
  std::size_t latest_ = 0;  ///< Index in `cache_` of the block used last.
  std::uint64_t clock_ = 0;
};

}  // namespace backtrail::decoder
