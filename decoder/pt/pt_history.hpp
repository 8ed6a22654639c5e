// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps the last N bytes of one thread's trace in Intel PT form, made from branch records.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "decoder/pt/pt_encoder.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Keeps whole stretches that begin with a PSB, and drops the oldest when the size is exceeded. An
/// exec drops everything before it, because those addresses refer to other code now.
class PtHistory : public TraceConsumer {
 public:
  /// @param insns       Borrowed; must outlive the history.
  /// @param size_bytes  Bound of read_all()'s result; memory is used as it fills. The newest
  /// stretch (a sixteenth of the size, between 256 bytes and 4 KiB) is always kept.
  PtHistory(InsnCache& insns, std::uint64_t size_bytes);

  void consume(std::span<const Record> records) override;

  /// Returns the packets kept, ending at `pc`, the thread's present pc. Empty before the first
  /// record.
  std::vector<std::uint8_t> read_all(TraceeAddr pc);
  /// Returns true if records arrived since the last read_all().
  [[nodiscard]] bool changed() const { return unread_; }
  /// Returns true if records arrived or the pc moved since the last read_all().
  [[nodiscard]] bool changed(TraceeAddr pc) const { return unread_ || read_pc_ != pc; }

  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
  /// Returns the number of packet bytes ever dropped.
  [[nodiscard]] std::uint64_t overwritten_bytes() const { return overwritten_bytes_; }

 private:
  void forget();
  void close_stretch();
  void drop_oldest(std::uint64_t extra_bytes);

  std::uint64_t size_bytes_;
  std::size_t stretch_bytes_;  // Length at which a stretch is closed.
  PtEncoder encoder_;
  std::deque<std::vector<std::uint8_t>> closed_;  // Whole stretches, oldest first.
  std::uint64_t closed_bytes_ = 0;
  std::vector<std::uint8_t> open_;  // The newest stretch.
  std::uint64_t overwritten_bytes_ = 0;
  bool unread_ = false;
  std::optional<TraceeAddr> read_pc_;
};

}  // namespace backtrail::decoder
