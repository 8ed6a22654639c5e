#pragma once
/// @file
/// The last N bytes of one thread's records, and the blocks gdb wants to see of them.

#include <cstdint>
#include <optional>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/bts/record_ring.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// A run of instructions executed in a row. `end` is the address of the last instruction's first
/// byte (inclusive).
struct Block {
  TraceeAddr begin;
  TraceeAddr end;
  bool operator==(const Block&) const = default;
};

/// Stands for "something is missing here" in a list of blocks.
inline constexpr Block kGapBlock{};

/// A ring of records (history mode: the oldest are overwritten and counted).
///
/// Blocks are made as gdb's branch trace wants them ("all", "new", "delta"; see docs/packets.md).
/// A gap inside the trace is kGapBlock, which gdb shows as a gap. An exec forgets all that was
/// before it: those addresses mean other code now.
class BtsHistory : public TraceConsumer {
 public:
  /// @param insns Borrowed; must outlive the history.
  /// @param size_bytes Capacity in bytes of records; memory is taken as it fills. At least one
  ///        record is kept.
  BtsHistory(InsnCache& insns, std::uint64_t size_bytes);

  void consume(std::span<const Record> records) override;

  /// Every whole block, newest first; the first one ends at `pc`, the thread's present pc. The
  /// block that the oldest record ends is left out: where it began is not known. Empty when there
  /// is no record. A pc that the newest record does not lead to stands alone before a gap.
  std::vector<Block> read_all(TraceeAddr pc);
  /// As read_all, or nothing when neither a record came nor the pc moved since the last read of
  /// any kind.
  std::vector<Block> read_new(TraceeAddr pc);
  /// Only what is new since the last read of any kind (or since recording began), newest first.
  /// The oldest block has begin 0: it goes on where the last read ended. Nothing when neither a
  /// record came nor the pc moved. Error kOverflow when records since then were overwritten or do
  /// not connect (a gap, a pc that they do not lead to, a signal before the first instruction);
  /// the read then does not count as one.
  Result<std::vector<Block>> read_delta(TraceeAddr pc);

  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
  /// Records lost to the ring's size, ever.
  [[nodiscard]] std::uint64_t overwritten() const { return ring_.overwritten(); }
  /// The records themselves, oldest first, begin() to end().
  [[nodiscard]] const RecordRing& records() const { return ring_; }
  /// Forgets all records. A delta after it is an error until the next full read.
  void clear();
  /// The reader believes that recording began where the thread is now; it began earlier. A delta is
  /// an error until the next full read.
  void note_earlier_start() { earlier_start_ = true; }

 private:
  struct OpenEnd;
  /// The first record that a delta tells of, and the pc it goes on from.
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
  std::uint64_t read_end_ = 0;         // the first record that no read has seen
  std::optional<TraceeAddr> read_pc_;  // where the last read ended
  bool earlier_start_ = false;         // than the reader knows, who has read nothing
};

}  // namespace backtrail::decoder
