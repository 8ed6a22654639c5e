// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds the data in perf's AUX area, and what is missing between.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/perf/perf_record.hpp"

namespace backtrail::decoder::perf {

/// A run of bytes with an AUX record, or whose record was lost.
struct AuxPiece {
  std::uint64_t offset = 0;  ///< A position that counts on, modulo the area's size.
  std::uint64_t size = 0;
  std::uint64_t flags = 0;
  /// An AUX record covers it; otherwise only the kernel's head moved over it.
  bool described = true;

  /// Returns true if data is missing at the end of these bytes.
  [[nodiscard]] bool truncated() const { return (flags & kAuxTruncated) != 0; }
  /// Returns true if data is missing within these bytes.
  [[nodiscard]] bool has_holes() const { return (flags & (kAuxPartial | kAuxCollision)) != 0; }
  bool operator==(const AuxPiece&) const = default;
};

/// Turns AUX records and the area's head into pieces, oldest first, each byte once. For full-trace
/// mode, in which positions count on. The head may skip bytes that are no data. These become no
/// piece unless AUX records were lost, when they may be data.
class AuxCursor {
 public:
  /// `area_bytes` is the length of the area.
  explicit AuxCursor(std::uint64_t area_bytes) : area_bytes_{area_bytes} {}

  /// Adds an AUX record from the data ring.
  void add(const AuxRecord& record);
  /// Reports that records of the ring were lost, perhaps AUX records among them.
  void ring_lost() { records_lost_ = true; }

  /// Returns the pieces up to `head`, which must be the area's head as read before the ring. A
  /// record arrives before its bytes are published, so all records of bytes below `head` are known.
  /// A record of unpublished bytes waits for the next call.
  std::vector<AuxPiece> take(std::uint64_t head);
  /// Returns the position after the last byte taken: bytes before it may be returned to the kernel.
  [[nodiscard]] std::uint64_t tail() const { return tail_; }

 private:
  void push(AuxPiece piece, std::vector<AuxPiece>& out);

  std::uint64_t area_bytes_;
  std::uint64_t tail_ = 0;
  std::vector<AuxRecord> waiting_;
  bool records_lost_ = false;
};

/// Copies a piece out of the area, in two parts if it wraps around.
[[nodiscard]] std::vector<std::uint8_t> copy_piece(std::span<const std::uint8_t> area,
                                                   std::uint64_t offset, std::uint64_t size);

/// Copies an area in snapshot mode, which is overwritten endlessly: first what follows `head`, the
/// offset at which the hardware stopped, then what precedes it. `unit` is the record size (1 for a
/// byte stream); trailing bytes of the area that hold no whole record are unused. Unless `wrapped`,
/// only what precedes the head counts.
[[nodiscard]] std::vector<std::uint8_t> copy_snapshot(std::span<const std::uint8_t> area,
                                                      std::uint64_t head, std::uint64_t unit,
                                                      bool wrapped);
/// Returns true if data follows the head; memory starts zeroed.
[[nodiscard]] bool snapshot_wrapped(std::span<const std::uint8_t> area, std::uint64_t head);

}  // namespace backtrail::decoder::perf
