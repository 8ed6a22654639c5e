#pragma once
/// @file
/// perf's data ring as bytes: records one behind the other, split where the ring ends.
///
///     0 .............. tail ............... head ...... size
///     free             unread records       free            positions count on, modulo the size

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "decoder/perf/perf_record.hpp"

namespace backtrail::decoder::perf {

/// How a walk over the ring ended.
struct RingWalk {
  std::uint64_t end = 0;  ///< Behind the last whole record.
  bool broken = false;    ///< There are bytes that are no record; they cannot be walked over.
};

/// Reads records; keeps only scratch memory for those that are split.
class DataRing {
 public:
  /// @param bytes The ring's memory, a power of two long. The kernel may write to it meanwhile.
  explicit DataRing(std::span<const std::uint8_t> bytes) : bytes_{bytes} {}

  /// Visits the records in [tail, head), oldest first. `head` was read with acquire order: nothing
  /// beyond it is looked at. A head that runs more than the size ahead is broken.
  RingWalk visit(std::uint64_t tail, std::uint64_t head,
                 const std::function<void(const RecordView&)>& visitor);

  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }
  /// Whether something that long may have found no room since `tail` was told to the kernel: that
  /// it was lost is written in front of the next record only, of which there may be none.
  [[nodiscard]] bool had_no_room(std::uint64_t tail, std::uint64_t head,
                                 std::uint64_t bytes) const {
    return head - tail + bytes >= size();
  }
  /// Copies `out.size()` bytes from a position on, in two parts where the ring ends.
  void copy(std::uint64_t position, std::span<std::uint8_t> out) const;

 private:
  std::span<const std::uint8_t> bytes_;
  std::vector<std::uint8_t> scratch_;
};

/// Visits the records of a run of bytes; stops at what is no record.
RingWalk walk_records(std::span<const std::uint8_t> bytes,
                      const std::function<void(const RecordView&)>& visitor);

}  // namespace backtrail::decoder::perf
