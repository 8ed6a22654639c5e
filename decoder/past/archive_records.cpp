// SPDX-License-Identifier: Apache-2.0
#include "decoder/past/archive_records.hpp"

#include <algorithm>

namespace backtrail::decoder {

ArchiveRecords::ArchiveRecords(const TraceArchive::Thread& thread) : thread_{thread} {
  starts_.push_back(0);
  for (const TraceBlock& block : thread.blocks) starts_.push_back(starts_.back() + block.records);
  if (thread.blocks.empty()) return;
  const TraceBlock& newest = thread.blocks.back();
  misses_end_ = newest.first + newest.records < thread.end;
}

/// Numbers in the file count lost records, too: if the previous block does not end where this one
/// begins, records between them are missing.
bool ArchiveRecords::follows_a_loss(std::size_t block) const {
  if (block == 0) return true;
  const TraceBlock& before = thread_.blocks[block - 1];
  return before.first + before.records != thread_.blocks[block].first;
}

std::vector<ValueFact> ArchiveRecords::numbered(std::vector<ValueFact> facts) const {
  std::size_t block = 0;
  std::erase_if(facts, [&](ValueFact& fact) {
    const auto is_before = [&] {
      const TraceBlock& here = thread_.blocks[block];
      return here.first + here.records <= fact.record;
    };
    while (block < thread_.blocks.size() && is_before()) ++block;
    if (block == thread_.blocks.size()) return true;
    if (fact.record < thread_.blocks[block].first) {
      fact.record = starts_[block];
      return !arch::is_of_code(fact.kind) && !arch::is_of_memory(fact.kind);
    }
    fact.record = starts_[block] + (fact.record - thread_.blocks[block].first);
    return false;
  });
  return facts;
}

ArchiveRecords::Unpacked& ArchiveRecords::unpacked(std::size_t block) {
  if (cache_[latest_].block == block) return cache_[latest_];
  const auto found = std::ranges::find(cache_, block, &Unpacked::block);
  const auto slot =
      found != cache_.end() ? found : std::ranges::min_element(cache_, {}, &Unpacked::used);
  latest_ = static_cast<std::size_t>(slot - cache_.begin());
  slot->used = ++clock_;
  if (slot->block == block) return *slot;
  slot->block = block;
  slot->records.clear();
  const std::size_t wanted = thread_.blocks[block].records;
  if (!decode_block(thread_.blocks[block], slot->records) || slot->records.size() != wanted) {
    slot->records.assign(wanted, gap(GapReason::kOverflow, TraceeAddr{}, TraceeAddr{}));
    return *slot;
  }
  Record& first = slot->records.front();
  const bool is_gap = first.kind == RecordKind::kGap;
  if (block == 0) {
    if (!is_gap) first = gap(GapReason::kStart, TraceeAddr{}, first.to);
  } else if (follows_a_loss(block) && !is_gap) {
    first = gap(GapReason::kOverflow, TraceeAddr{}, first.to);
  }
  return *slot;
}

Record ArchiveRecords::at(std::uint64_t number) {
  if (number == starts_.back()) return gap(GapReason::kOverflow, TraceeAddr{}, thread_.pc);
  const auto behind = std::upper_bound(starts_.begin(), starts_.end(), number);
  const auto block = static_cast<std::size_t>(behind - starts_.begin()) - 1;
  return unpacked(block).records[number - starts_[block]];
}

}  // namespace backtrail::decoder
