// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The last N bytes of one thread's records, and the blocks that gdb reads from them.

#include <cstdint>
#include <optional>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/bts/record_ring.hpp"
#include "decoder/trace/fact_ring.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// A run of consecutive instructions. `end` is the address of the last instruction (inclusive).
struct Block {
  TraceeAddr begin;
  TraceeAddr end;
  bool operator==(const Block&) const = default;
};

/// Marks a gap in a list of blocks.
inline constexpr Block kGapBlock{};

/// A ring of records: the oldest are overwritten and counted.
///
/// Makes blocks for gdb's branch trace ("all", "new", "delta"; see docs/packets.md). A gap inside
/// the trace becomes kGapBlock, which gdb shows as a gap. An exec drops all earlier records,
/// because their addresses refer to other code now.
class BtsHistory : public TraceConsumer {
 public:
  /// @param insns       Borrowed; must outlive the history.
  /// @param size_bytes  Capacity in bytes of records; memory is used as it fills. At least one
  /// record is kept.
  BtsHistory(InsnCache& insns, std::uint64_t size_bytes);

  void consume(std::span<const Record> records) override;
  void consume_facts(std::span<const ValueFact> facts) override {
    facts_.append(facts, ring_.end());
  }

  /// Returns all whole blocks, newest first. The first ends at `pc`, the thread's present pc; if
  /// the newest record does not lead there, the pc is a block of its own before a gap. The block
  /// that ends at the oldest record is left out, because its begin is unknown. Empty if there is no
  /// record.
  std::vector<Block> read_all(TraceeAddr pc);
  /// Returns read_all(); empty if no record arrived and the pc has not moved since the last read of
  /// any kind.
  std::vector<Block> read_new(TraceeAddr pc);
  /// Returns the blocks since the last read of any kind, or since recording began, newest first.
  /// The oldest has begin 0: it continues where the last read ended. Empty if no record arrived and
  /// the pc has not moved. Error kOverflow: records since then were overwritten or do not connect
  /// (a gap, an unreachable pc, a signal before the first instruction); the failed read does not
  /// count.
  Result<std::vector<Block>> read_delta(TraceeAddr pc);

  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
  /// Returns the number of records ever overwritten.
  [[nodiscard]] std::uint64_t overwritten() const { return ring_.overwritten(); }
  /// Returns the recorded values.
  [[nodiscard]] const FactRing& facts() const { return facts_; }
  /// Returns the records, oldest first, begin() to end().
  [[nodiscard]] const RecordRing& records() const { return ring_; }
  /// Drops all records. Deltas fail until the next full read.
  void clear();
  /// Drops all but the newest `count` records, which do not count as overwritten. For histories
  /// that are only read by records().
  void keep_newest(std::uint64_t count) { ring_.keep_newest(count); }
  /// Reports that recording began earlier than where the thread is now, which the reader assumes.
  /// Deltas fail until the next full read.
  void note_earlier_start() { earlier_start_ = true; }

 private:
  struct OpenEnd;
  /// The first record of a delta, and the pc that it continues from.
  struct Unread {
    std::uint64_t first;
    TraceeAddr begin;
  };

  [[nodiscard]] bool unchanged(TraceeAddr pc) const;
  [[nodiscard]] OpenEnd end_at_pc(TraceeAddr begin, TraceeAddr pc, std::vector<Block>& out) const;
  void close_block(TraceeAddr begin, const OpenEnd& end, std::vector<Block>& out) const;
  [[nodiscard]] std::vector<Block> blocks_since(std::uint64_t first, TraceeAddr pc) const;
  [[nodiscard]] Result<Unread> unread() const;
  [[nodiscard]] Result<Block> oldest_delta_block(TraceeAddr begin, const Record& first) const;
  void note_read(TraceeAddr pc);

  InsnCache& insns_;
  std::uint64_t size_bytes_;
  RecordRing ring_;
  FactRing facts_;
  std::uint64_t read_end_ = 0;         // The first record after the last read.
  std::optional<TraceeAddr> read_pc_;  // Where the last read ended.
  bool earlier_start_ = false;         // Recording began before the reader's assumed start.
};

}  // namespace backtrail::decoder
