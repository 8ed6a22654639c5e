// SPDX-License-Identifier: Apache-2.0
#include "decoder/past/timeline.hpp"

#include "decoder/trace/block_walker.hpp"

namespace backtrail::decoder {
namespace {

bool is_gap(const Record& record) {
  return record.kind == RecordKind::kGap;
}

bool begins_history(const Record& record) {
  return is_gap(record) &&
         (record.reason == GapReason::kExec || record.reason == GapReason::kStart);
}

std::uint32_t count_of(const std::vector<TraceeAddr>& pcs) {
  return static_cast<std::uint32_t>(pcs.size());
}

}  // namespace

Timeline::Timeline(InsnCache& insns, RecordSequence& records, TraceeAddr pc, CodeHistory* code)
    : insns_{insns}, records_{records}, code_{code}, pc_{pc} {
  newest_.pc = pc;
  if (records.begin() == records.end()) return;
  newest_.block = records.end() - 1;
  newest_.instruction = count_of(block(newest_.block).pcs);
}

/// Returns the record that ends the block. The newest block ends before the thread's pc, as before
/// a gap.
Record Timeline::end_of(std::uint64_t number) {
  if (number + 1 < records_.end()) return records_.at(number + 1);
  return gap(GapReason::kNone, pc_, pc_);
}

Timeline::Block Timeline::walk(std::uint64_t number) {
  Block out;
  if (number >= records_.end()) {
    out.begins_history = true;
    return out;
  }
  const Record begins = records_.at(number);
  const Record ends = end_of(number);
  out.after_gap = is_gap(begins);
  out.begins_history = number == records_.begin() || begins_history(begins);
  const bool branch = ends.kind == RecordKind::kBranch;
  // If a gap's beginning is unknown, so is the code before it. A source without records of signal
  // delivery names the block's beginning instead.
  const bool unknown_end = is_gap(ends) && ends.from.value() == 0;
  if (begins.to.value() == 0 || unknown_end) {
    if (branch) out.pcs.push_back(ends.from);
    out.complete = false;
    return out;
  }
  const auto facts_at = [&](TraceeAddr pc) -> const arch::InsnFacts& {
    return executed_facts(code_, insns_, number, pc);
  };
  const Walk walk =
      walk_insns(facts_at, begins.to, ends.from,
                 [&](TraceeAddr pc, const arch::InsnFacts&) { out.pcs.push_back(pc); });
  out.complete = walk.reached();
  if (branch) out.pcs.push_back(ends.from);
  return out;
}

const Timeline::Block& Timeline::block(std::uint64_t number) {
  if (walked_ != number) {
    walked_block_ = walk(number);
    walked_ = number;
  }
  return walked_block_;
}

std::optional<Timeline::Move> Timeline::back(const PastPosition& from) {
  Move move{from};
  while (move.to.instruction == 0) {
    const Block& here = block(move.to.block);
    if (here.begins_history) return std::nullopt;
    move.crossed_gap = move.crossed_gap || here.after_gap;
    --move.to.block;
    const Block& before = block(move.to.block);
    move.to.instruction = count_of(before.pcs);
  }
  const Block& here = block(move.to.block);
  // The instruction that ends an incomplete block follows its missing instructions.
  if (!here.complete && move.to.instruction == count_of(here.pcs)) move.crossed_gap = true;
  --move.to.instruction;
  move.to.pc = here.pcs[move.to.instruction];
  return move;
}

std::optional<Timeline::Move> Timeline::forward(const PastPosition& from) {
  if (from >= newest_) return std::nullopt;
  Move move{from};
  ++move.to.instruction;
  while (true) {
    const Block& here = block(move.to.block);
    // The last instruction of an incomplete block follows the missing ones; in the newest block
    // that is the one not executed yet.
    const bool newest = move.to.block == newest_.block;
    const std::uint32_t count = count_of(here.pcs);
    const bool last = move.to.instruction + 1 == (newest ? newest_.instruction + 1 : count);
    if (!here.complete && last) move.crossed_gap = true;
    if (move.to.instruction < count) {
      move.to.pc = here.pcs[move.to.instruction];
      return move;
    }
    if (newest) {
      move.to = newest_;
      return move;
    }
    ++move.to.block;
    move.to.instruction = 0;
    move.crossed_gap = move.crossed_gap || block(move.to.block).after_gap;
  }
}

/// Returns true if the block's addresses may include a stop. Cheap; may be wrongly true, never
/// wrongly false.
bool Timeline::may_hold(const Record& begins, const Record& ends,
                        const std::set<TraceeAddr>& stops) const {
  if (ends.kind == RecordKind::kBranch && stops.contains(ends.from)) return true;
  const auto first = stops.lower_bound(begins.to);
  return first != stops.end() && *first <= ends.from;
}

/// Returns the first position after an empty block.
PastPosition Timeline::first_after(std::uint64_t number) {
  while (++number <= newest_.block) {
    const Block& here = block(number);
    if (!here.pcs.empty()) return {number, 0, here.pcs.front()};
  }
  return newest_;
}

Timeline::Search Timeline::search_back(const PastPosition& from,
                                       const std::set<TraceeAddr>& stops) {
  Search search{from};
  // Search the first block only up to the position from which the search begins.
  std::uint32_t below = from.instruction;
  for (std::uint64_t number = from.block;;) {
    const Record begins = number < records_.end() ? records_.at(number) : Record{};
    const bool whole = number != from.block;
    const bool oldest = number == records_.begin() || begins_history(begins);
    if (!whole || oldest || may_hold(begins, end_of(number), stops)) {
      const Block& here = block(number);
      if (whole) below = count_of(here.pcs);
      for (std::uint32_t i = below; i-- > 0;) {
        search.at = {number, i, here.pcs[i]};
        if (stops.contains(here.pcs[i])) {
          search.found = true;
          return search;
        }
      }
    }
    if (oldest || number >= records_.end()) {
      if (block(number).pcs.empty()) search.at = first_after(number);
      return search;
    }
    search.crossed_gap = search.crossed_gap || is_gap(begins);
    --number;
  }
}

Timeline::Search Timeline::search_forward(const PastPosition& from,
                                          const std::set<TraceeAddr>& stops,
                                          const PastPosition& end) {
  Search search{end};
  if (from >= end) {
    search.at = from;
    return search;
  }
  std::uint32_t next = from.instruction + 1;
  for (std::uint64_t number = from.block; number <= end.block; ++number) {
    const Record begins = records_.at(number);
    const bool whole = number != from.block;
    search.crossed_gap = search.crossed_gap || (whole && is_gap(begins));
    if (!whole || may_hold(begins, end_of(number), stops)) {
      const Block& here = block(number);
      const std::uint32_t count = number == end.block ? end.instruction : count_of(here.pcs);
      for (std::uint32_t i = next; i < count; ++i) {
        if (!stops.contains(here.pcs[i])) continue;
        search.at = {number, i, here.pcs[i]};
        search.found = true;
        return search;
      }
    }
    next = 0;
  }
  // `end` itself may be a stop, but reaching it ends the search anyway.
  return search;
}

}  // namespace backtrail::decoder
