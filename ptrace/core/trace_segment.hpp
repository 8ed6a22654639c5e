#pragma once
/// @file
/// Writes the traces' segment of a core file: the newest blocks of every thread first, so that a
/// disk that is full, a limit, or a file that is cut off costs the oldest.

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
  /// All are borrowed. The segment begins at `offset` of the file.
  TraceSegment(CoreOutput& output, std::span<const CoreTrace> traces, std::uint64_t offset);

  /// Writes what there is room for. Errors: of the file, a full disk aside.
  Result<void> write();
  /// Leaves out the oldest blocks, of at least so many bytes together, but not more than half of
  /// the segment. Returns how many bytes shorter the segment is: call cut() then.
  std::uint64_t give_up(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// What is in the file, for the index.
  [[nodiscard]] std::vector<decoder::TraceIndexEntry> index() const;
  /// Branches of all threads that are older than what is in the file.
  [[nodiscard]] std::uint64_t older_branches() const;
  /// Records that the traces had and there was no room for.
  [[nodiscard]] std::uint64_t records_without_room() const;
  /// An index of traces of which nothing has been written yet: of the size of the final one.
  [[nodiscard]] static std::vector<decoder::TraceIndexEntry> empty_index(
      std::span<const CoreTrace> traces);

 private:
  struct Written {
    std::size_t trace = 0;
    std::uint64_t bytes = 0;
    std::uint64_t first = 0;
    std::uint64_t records = 0;  ///< 0: a block of another kind.
    std::uint64_t others = 0;
  };
  Result<void> write_all();
  /// Of each thread in `open` its next block; threads that have no more leave the list.
  Result<void> write_round(std::vector<std::size_t>& open);
  Result<void> put(std::span<const std::uint8_t> block, const Written& what);
  Result<void> put_away();

  CoreOutput& output_;
  std::span<const CoreTrace> traces_;
  std::uint64_t offset_;
  std::uint64_t bytes_ = 0;            ///< Of whole blocks in the file.
  std::vector<std::uint8_t> waiting_;  ///< Blocks of a thousand threads are written together.
  std::vector<Written> waiting_blocks_;
  std::vector<Written> written_;  ///< In the file's order.
};

}  // namespace backtrail::tracee
