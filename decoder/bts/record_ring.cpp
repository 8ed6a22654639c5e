// SPDX-License-Identifier: Apache-2.0
#include "decoder/bts/record_ring.hpp"

#include <algorithm>

#include "arch/base/check.hpp"

namespace backtrail::decoder {
namespace {

std::uint64_t gaps_in(std::span<const Record> records) {
  return static_cast<std::uint64_t>(
      std::count_if(records.begin(), records.end(),
                    [](const Record& record) { return record.kind == RecordKind::kGap; }));
}

}  // namespace

RecordRing::RecordRing(std::uint64_t capacity) : capacity_{std::max<std::uint64_t>(capacity, 1)} {}

void RecordRing::append(std::span<const Record> records) {
  const std::uint64_t end = end_ + records.size();
  if (records.size() > capacity_) {
    // The first records would be overwritten at once.
    gaps_before_ += gaps_in(records.first(records.size() - capacity_));
    records = records.last(capacity_);
    end_ = end - capacity_;
  }
  while (!records.empty()) {
    const std::uint64_t slot = (end_ - base_) % capacity_;
    if (slot / kChunkRecords >= chunks_.size()) chunks_.resize(slot / kChunkRecords + 1);
    Chunk& chunk = chunks_[slot / kChunkRecords];
    chunk.reserve(kChunkRecords);
    const std::uint64_t offset = slot % kChunkRecords;
    const std::uint64_t count =
        std::min<std::uint64_t>({records.size(), kChunkRecords - offset, capacity_ - slot});
    // If more arrived at once than the ring holds, the first never were in it.
    if (chunk.size() < offset) chunk.resize(offset);
    // The first turn fills the ring; later turns overwrite it.
    const std::uint64_t old = std::min(count, chunk.size() - offset);
    gaps_before_ += gaps_in(std::span{chunk}.subspan(offset, old));
    std::copy_n(records.begin(), old, chunk.begin() + static_cast<std::ptrdiff_t>(offset));
    const auto fresh = records.subspan(old, count - old);
    chunk.insert(chunk.end(), fresh.begin(), fresh.end());
    records = records.subspan(count);
    end_ += count;
  }
  if (end_ - begin_ > capacity_) {
    overwritten_ += end_ - capacity_ - begin_;
    begin_ = end_ - capacity_;
  }
}

void RecordRing::clear() {
  for (std::uint64_t number = begin_; number < end_; ++number) {
    if (at(number).kind == RecordKind::kGap) ++gaps_before_;
  }
  chunks_.clear();
  base_ = begin_ = end_;
}

void RecordRing::keep_newest(std::uint64_t count) {
  if (count >= size()) return;
  std::vector<Record> kept;
  kept.reserve(count);
  for (std::uint64_t number = begin_; number < end_ - count; ++number) {
    if (at(number).kind == RecordKind::kGap) ++gaps_before_;
  }
  for (std::uint64_t number = end_ - count; number < end_; ++number) kept.push_back(at(number));
  chunks_.clear();
  base_ = begin_ = end_ = end_ - count;
  append(kept);
}

const Record& RecordRing::at(std::uint64_t number) const {
  BT_CHECK(number >= begin_ && number < end_);
  const std::uint64_t slot = (number - base_) % capacity_;
  return chunks_[slot / kChunkRecords][slot % kChunkRecords];
}

}  // namespace backtrail::decoder
