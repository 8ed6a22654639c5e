// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// perf's data ring as bytes: consecutive records, split at the end of the ring.
///
///     0 .............. tail ............... head ...... size
///     free             unread records       free            positions count on, modulo the size

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "decoder/perf/perf_record.hpp"

namespace backtrail::decoder::perf {

/// The result of a walk over the ring.
struct RingWalk {
  std::uint64_t end = 0;  ///< Position after the last whole record.
  bool broken = false;    ///< Bytes follow that are no valid record; the walk cannot pass them.
};

/// Reads records. Its only memory is scratch space for split records.
class DataRing {
 public:
  /// @param bytes  The ring's memory; its length is a power of two. The kernel may write to it
  /// meanwhile.
  explicit DataRing(std::span<const std::uint8_t> bytes) : bytes_{bytes} {}

  /// Visits the records in [tail, head), oldest first. `head` must be read with acquire order. A
  /// distance greater than the ring is broken.
  RingWalk visit(std::uint64_t tail, std::uint64_t head,
                 const std::function<void(const RecordView&)>& visitor);

  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }
  /// Returns true if a record of `bytes` bytes may have found no room since the kernel was given
  /// `tail`. The kernel writes the loss only before its next record, which may never come.
  [[nodiscard]] bool had_no_room(std::uint64_t tail, std::uint64_t head,
                                 std::uint64_t bytes) const {
    return head - tail + bytes >= size();
  }
  /// Copies `out.size()` bytes from a position on, in two parts if they wrap around.
  void copy(std::uint64_t position, std::span<std::uint8_t> out) const;

 private:
  std::span<const std::uint8_t> bytes_;
  std::vector<std::uint8_t> scratch_;
};

/// Visits consecutive records in `bytes`; stops at the first invalid one.
RingWalk walk_records(std::span<const std::uint8_t> bytes,
                      const std::function<void(const RecordView&)>& visitor);

}  // namespace backtrail::decoder::perf
