// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/aux_area.hpp"

#include <algorithm>

namespace backtrail::decoder::perf {

void AuxCursor::add(const AuxRecord& record) {
  waiting_.push_back(record);
}

void AuxCursor::push(AuxPiece piece, std::vector<AuxPiece>& out) {
  // Skips bytes that were taken before, or overwritten before they could be read.
  if (piece.offset < tail_) {
    const std::uint64_t known = std::min(tail_ - piece.offset, piece.size);
    piece.offset += known;
    piece.size -= known;
  }
  if (piece.size != 0) tail_ = piece.offset + piece.size;
  if (piece.size != 0 || piece.flags != 0) out.push_back(piece);
}

std::vector<AuxPiece> AuxCursor::take(std::uint64_t head) {
  std::vector<AuxPiece> out;
  std::size_t taken = 0;
  for (; taken < waiting_.size(); ++taken) {
    const AuxRecord& record = waiting_[taken];
    const std::uint64_t end = record.offset + record.size;
    if (end < record.offset || record.size > area_bytes_) continue;  // No such bytes exist.
    if (end > head) break;  // A record arrives before its bytes are published.
    if (records_lost_ && record.offset > tail_) push({tail_, record.offset - tail_, 0, false}, out);
    push({record.offset, record.size, record.flags, true}, out);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken));
  if (waiting_.empty() && head > tail_) {
    if (records_lost_) push({tail_, head - tail_, 0, false}, out);
    tail_ = head;  // Skips padding without a record.
  }
  if (waiting_.empty()) records_lost_ = false;
  return out;
}

std::vector<std::uint8_t> copy_piece(std::span<const std::uint8_t> area, std::uint64_t offset,
                                     std::uint64_t size) {
  std::vector<std::uint8_t> out;
  if (area.empty()) return out;
  size = std::min<std::uint64_t>(size, area.size());
  const std::uint64_t at = offset % area.size();
  const std::uint64_t front = std::min(size, area.size() - at);
  out.reserve(size);
  const auto first = area.subspan(at, front);
  const auto second = area.first(size - front);
  out.insert(out.end(), first.begin(), first.end());
  out.insert(out.end(), second.begin(), second.end());
  return out;
}

bool snapshot_wrapped(std::span<const std::uint8_t> area, std::uint64_t head) {
  const auto behind = area.subspan(std::min<std::uint64_t>(head, area.size()));
  return std::any_of(behind.begin(), behind.end(), [](std::uint8_t byte) { return byte != 0; });
}

std::vector<std::uint8_t> copy_snapshot(std::span<const std::uint8_t> area, std::uint64_t head,
                                        std::uint64_t unit, bool wrapped) {
  area = area.first(area.size() / unit * unit);
  const std::uint64_t at = std::min<std::uint64_t>(head / unit * unit, area.size());
  std::vector<std::uint8_t> out;
  if (wrapped) {
    const auto older = area.subspan(at);
    out.insert(out.end(), older.begin(), older.end());
  }
  const auto newer = area.first(at);
  out.insert(out.end(), newer.begin(), newer.end());
  return out;
}

}  // namespace backtrail::decoder::perf
