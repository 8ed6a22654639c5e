// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/continuity_filter.hpp"

#include "decoder/trace/block_walker.hpp"

namespace backtrail::decoder::perf {

bool ContinuityFilter::joins(TraceeAddr begin, TraceeAddr end) {
  if (generation_ != insns_.generation()) {
    known_.fill({});
    generation_ = insns_.generation();
  }
  const std::uint64_t mixed = begin.value() * 0x9e37'79b9'7f4a'7c15U ^ end.value();
  Joined& slot = known_[(mixed >> 20U) % kSlots];
  if (slot.begin == begin && slot.end == end) return true;
  const Walk walk = walk_block(insns_, begin, end);
  if (walk.end == WalkEnd::kDiverged) return false;
  if (walk.reached()) slot = {begin, end};
  return true;
}

void ContinuityFilter::consume(std::span<const Record> records) {
  std::size_t sent = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.kind == RecordKind::kBranch && at_ && !joins(*at_, record.from)) {
      if (i != sent) sink_.consume(records.subspan(sent, i - sent));
      sent = i;
      const Record hole = gap(GapReason::kUnseenAsync, *at_, record.from);
      sink_.consume({&hole, 1});
      ++breaks_;
    }
    at_ = record.to;
  }
  if (sent != records.size()) sink_.consume(records.subspan(sent));
}

}  // namespace backtrail::decoder::perf
