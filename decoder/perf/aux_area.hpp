#pragma once
/// @file
/// perf's AUX area as bytes: which of them are data, and what is missing between them.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/perf/perf_record.hpp"

namespace backtrail::decoder::perf {

/// A run of bytes that an AUX record vouches for, or that lost its record.
struct AuxPiece {
  std::uint64_t offset = 0;  ///< Position; modulo the area's size.
  std::uint64_t size = 0;
  std::uint64_t flags = 0;
  bool described = true;  ///< An AUX record said so; else only that the kernel's head moved.

  /// Something is missing at the end of these bytes.
  [[nodiscard]] bool truncated() const { return (flags & kAuxTruncated) != 0; }
  /// Something is missing within them.
  [[nodiscard]] bool has_holes() const { return (flags & (kAuxPartial | kAuxCollision)) != 0; }
  bool operator==(const AuxPiece&) const = default;
};

/// Turns AUX records and the area's head into pieces, oldest first, each byte once (full-trace
/// mode, in which positions count on). The head may jump over bytes that are no data; those are no
/// piece, unless AUX records were lost too: then they may be either.
class AuxCursor {
 public:
  /// `area_bytes`: how long the area is.
  explicit AuxCursor(std::uint64_t area_bytes) : area_bytes_{area_bytes} {}

  /// An AUX record was read from the data ring.
  void add(const AuxRecord& record);
  /// Records of the ring were lost; AUX records may have been among them.
  void ring_lost() { records_lost_ = true; }

  /// The pieces up to `head`, the area's head as it was read *before* the ring: a record comes
  /// before its bytes are published, so all records of bytes below head are known by now. Records
  /// whose bytes the kernel had not published yet wait for the next call.
  std::vector<AuxPiece> take(std::uint64_t head);
  /// Behind the last byte taken: what may be given back to the kernel.
  [[nodiscard]] std::uint64_t tail() const { return tail_; }

 private:
  void push(AuxPiece piece, std::vector<AuxPiece>& out);

  std::uint64_t area_bytes_;
  std::uint64_t tail_ = 0;
  std::vector<AuxRecord> waiting_;
  bool records_lost_ = false;
};

/// Copies a piece out of the area, in two parts where it ends.
[[nodiscard]] std::vector<std::uint8_t> copy_piece(std::span<const std::uint8_t> area,
                                                   std::uint64_t offset, std::uint64_t size);

/// A snapshot area (overwritten for ever): what lies behind `head`, the offset at which the
/// hardware stopped, then what lies before it. `unit` is the size of a record; the area's last
/// bytes that hold no whole one are never used (1 for a stream of bytes). Until the area was full
/// once, only what lies before the head counts.
[[nodiscard]] std::vector<std::uint8_t> copy_snapshot(std::span<const std::uint8_t> area,
                                                      std::uint64_t head, std::uint64_t unit,
                                                      bool wrapped);
/// Whether there is anything behind the head: memory starts zeroed.
[[nodiscard]] bool snapshot_wrapped(std::span<const std::uint8_t> area, std::uint64_t head);

}  // namespace backtrail::decoder::perf
