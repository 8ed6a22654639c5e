// SPDX-License-Identifier: Apache-2.0
#include "decoder/bts/bts_history.hpp"

#include <algorithm>

#include "decoder/trace/block_walker.hpp"

namespace backtrail::decoder {

/// The end of a block whose begin is not known yet.
struct BtsHistory::OpenEnd {
  enum class Kind : std::uint8_t {
    kLast,     ///< `address` is the last instruction.
    kNext,     ///< `address` is the next instruction, which did not run.
    kUnknown,  ///< The end is unknown.
  };
  Kind kind = Kind::kUnknown;
  TraceeAddr address;

  static OpenEnd of(const Record& record) {
    if (record.kind == RecordKind::kBranch) return {Kind::kLast, record.from};
    if (record.kind == RecordKind::kGap && record.from == TraceeAddr{}) return {};
    return {Kind::kNext, record.from};
  }
};

namespace {

void push_gap(std::vector<Block>& out) {
  if (!out.empty() && out.back() != kGapBlock) out.push_back(kGapBlock);
}

}  // namespace

BtsHistory::BtsHistory(InsnCache& insns, std::uint64_t size_bytes)
    : insns_{insns}, size_bytes_{size_bytes}, ring_{size_bytes / sizeof(Record)} {}

void BtsHistory::consume(std::span<const Record> records) {
  const auto exec = std::find_if(records.rbegin(), records.rend(), [](const Record& r) {
    return r.kind == RecordKind::kGap && r.reason == GapReason::kExec;
  });
  if (exec != records.rend()) {
    ring_.clear();
    facts_.clear();
    records = records.last(static_cast<std::size_t>(exec - records.rbegin()) + 1);
  }
  ring_.append(records);
}

void BtsHistory::clear() {
  ring_.clear();
  facts_.clear();
  read_pc_.reset();
}

bool BtsHistory::unchanged(TraceeAddr pc) const {
  return read_end_ == ring_.end() && read_pc_ == pc;
}

void BtsHistory::note_read(TraceeAddr pc) {
  read_end_ = ring_.end();
  read_pc_ = pc;
}

/// Appends the block from `begin` to `end`; appends none if no instruction ran. `out` is newest
/// first.
void BtsHistory::close_block(TraceeAddr begin, const OpenEnd& end, std::vector<Block>& out) const {
  switch (end.kind) {
    case OpenEnd::Kind::kLast:
      out.push_back({begin, end.address});
      return;
    case OpenEnd::Kind::kNext: {
      const Walk walk = walk_block(insns_, begin, end.address);
      if (!walk.reached()) push_gap(out);
      // Code before the unreadable part did run.
      const bool ran = walk.reached() || walk.end == WalkEnd::kUndecodable;
      if (ran && walk.instructions != 0) out.push_back({begin, walk.last});
      return;
    }
    case OpenEnd::Kind::kUnknown:
      return;
  }
}

/// Returns the present pc as the end of the newest block. If straight-line code from `begin` does
/// not reach the pc, the pc becomes a block of its own before a gap.
BtsHistory::OpenEnd BtsHistory::end_at_pc(TraceeAddr begin, TraceeAddr pc,
                                          std::vector<Block>& out) const {
  if (walk_block(insns_, begin, pc).reached()) return {OpenEnd::Kind::kLast, pc};
  out.push_back({pc, pc});
  push_gap(out);
  return {};
}

/// Returns the whole blocks that begin at or after the target of record `first`, newest first.
std::vector<Block> BtsHistory::blocks_since(std::uint64_t first, TraceeAddr pc) const {
  std::vector<Block> blocks;
  blocks.reserve(ring_.end() - first + 1);
  OpenEnd end = end_at_pc(ring_.at(ring_.end() - 1).to, pc, blocks);
  for (std::uint64_t number = ring_.end(); number-- != first;) {
    const Record& record = ring_.at(number);
    close_block(record.to, end, blocks);
    if (record.kind == RecordKind::kGap && number != first) push_gap(blocks);
    end = OpenEnd::of(record);
  }
  return blocks;
}

std::vector<Block> BtsHistory::read_all(TraceeAddr pc) {
  note_read(pc);
  if (ring_.size() == 0) return {};
  std::vector<Block> blocks = blocks_since(ring_.begin(), pc);
  // A gap before everything is not shown.
  if (blocks.back() == kGapBlock) blocks.pop_back();
  return blocks;
}

std::vector<Block> BtsHistory::read_new(TraceeAddr pc) {
  if (unchanged(pc)) return {};
  return read_all(pc);
}

/// Returns the block that continues at `begin`, where the last read ended, and ends at `first`.
Result<Block> BtsHistory::oldest_delta_block(TraceeAddr begin, const Record& first) const {
  const Walk walk = walk_block(insns_, begin, first.from);
  if (!walk.reached()) return fail(TraceErrc::kOverflow, "delta", first.from.value());
  if (first.kind == RecordKind::kBranch) return Block{TraceeAddr{}, first.from};
  // gdb counts the last read's pc as executed, so a block without instructions cannot be expressed.
  if (walk.instructions == 0) return fail(TraceErrc::kOverflow, "delta", first.from.value());
  return Block{TraceeAddr{}, walk.last};
}

Result<BtsHistory::Unread> BtsHistory::unread() const {
  Unread unread{read_end_, read_pc_.value_or(TraceeAddr{})};
  const bool from_start = !earlier_start_ && read_end_ == 0 && ring_.begin() == 0 &&
                          ring_.size() != 0 && ring_.at(0).reason == GapReason::kStart;
  if (from_start) {
    unread = {1, ring_.at(0).to};
  } else if (!read_pc_ || read_end_ < ring_.begin()) {
    return fail(TraceErrc::kOverflow, "delta");
  }
  for (std::uint64_t number = unread.first; number != ring_.end(); ++number) {
    if (ring_.at(number).kind == RecordKind::kGap) return fail(TraceErrc::kOverflow, "delta");
  }
  return unread;
}

Result<std::vector<Block>> BtsHistory::read_delta(TraceeAddr pc) {
  if (unchanged(pc) || (ring_.end() == 0 && !read_pc_)) return std::vector<Block>{};
  BT_TRY(const Unread from, unread());
  std::vector<Block> blocks;
  if (from.first == ring_.end()) {
    if (!walk_block(insns_, from.begin, pc).reached()) {
      return fail(TraceErrc::kOverflow, "delta", pc.value());
    }
    blocks.push_back({TraceeAddr{}, pc});
  } else {
    BT_TRY(const Block oldest, oldest_delta_block(from.begin, ring_.at(from.first)));
    blocks = blocks_since(from.first, pc);
    if (std::find(blocks.begin(), blocks.end(), kGapBlock) != blocks.end()) {
      return fail(TraceErrc::kOverflow, "delta", pc.value());
    }
    blocks.push_back(oldest);
  }
  note_read(pc);
  return blocks;
}

}  // namespace backtrail::decoder
