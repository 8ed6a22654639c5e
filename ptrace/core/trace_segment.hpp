// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes the segment of traces in a core file. The newest blocks of every thread come first, so
/// that a full disk, a limit or a truncated file loses the oldest records.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/corefile/core_format.hpp"
#include "ptrace/core/core_notes.hpp"
#include "ptrace/core/core_output.hpp"

namespace backtrail::tracee {

class TraceSegment {
 public:
  /// Borrows its arguments. The segment begins at `offset` in the file.
  TraceSegment(CoreOutput& output, std::span<const CoreTrace> traces, std::uint64_t offset);

  /// Writes as many blocks as fit. Errors: those of the file except a full disk.
  Result<void> write();
  /// Drops the oldest blocks: at least `bytes` bytes if possible, but at most half of the segment.
  /// Returns how many bytes shorter the segment became; the caller must then cut the output.
  std::uint64_t give_up(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Returns the index of the traces that are in the file.
  [[nodiscard]] std::vector<decoder::TraceIndexEntry> index() const;
  /// Returns how many branches of all threads are older than the ones in the file.
  [[nodiscard]] std::uint64_t older_branches() const;
  /// Returns how many records of the traces did not fit.
  [[nodiscard]] std::uint64_t records_without_room() const;
  /// Returns an index of traces without records. It has the size of the final index.
  [[nodiscard]] static std::vector<decoder::TraceIndexEntry> empty_index(
      std::span<const CoreTrace> traces);

 private:
  struct Written {
    std::size_t trace = 0;
    std::uint64_t bytes = 0;
    std::uint64_t first = 0;
    std::uint64_t records = 0;  ///< 0 for a block of another kind.
    std::uint64_t others = 0;
  };
  Result<void> write_all();
  /// Writes the next block of each thread in `open`, and removes threads that have no more.
  Result<void> write_round(std::vector<std::size_t>& open);
  Result<void> put(std::span<const std::uint8_t> block, const Written& what);
  Result<void> put_away();

  CoreOutput& output_;
  std::span<const CoreTrace> traces_;
  std::uint64_t offset_;
  std::uint64_t bytes_ = 0;            ///< Bytes of whole blocks in the file.
  std::vector<std::uint8_t> waiting_;  ///< Blocks collected for one write, because there may be a
                                       ///< thousand threads.
  std::vector<Written> waiting_blocks_;
  std::vector<Written> written_;  ///< Blocks in the file, in order.
};

}  // namespace backtrail::tracee
