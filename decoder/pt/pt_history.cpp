// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_history.hpp"

#include <algorithm>

namespace backtrail::decoder {
namespace {

// A PSB costs 27 bytes and the return stack. Hardware writes one every 4 KiB. Small rings get more,
// because dropping removes a whole stretch.
constexpr std::uint64_t kMinStretchBytes = 256;
constexpr std::uint64_t kMaxStretchBytes = 4096;
constexpr std::uint64_t kStretchesInRing = 16;

}  // namespace

PtHistory::PtHistory(InsnCache& insns, std::uint64_t size_bytes)
    : size_bytes_{size_bytes},
      stretch_bytes_{static_cast<std::size_t>(
          std::clamp(size_bytes / kStretchesInRing, kMinStretchBytes, kMaxStretchBytes))},
      encoder_{insns} {}

void PtHistory::consume(std::span<const Record> records) {
  if (records.empty()) return;
  unread_ = true;
  const auto exec = std::find_if(records.rbegin(), records.rend(), [](const Record& r) {
    return r.kind == RecordKind::kGap && r.reason == GapReason::kExec;
  });
  if (exec != records.rend()) {
    forget();
    records = records.last(static_cast<std::size_t>(exec - records.rbegin()) + 1);
  }
  // Small enough that a stretch hardly exceeds its length.
  const std::size_t batch = stretch_bytes_ / 16;
  while (!records.empty()) {
    const std::size_t count = std::min(batch, records.size());
    encoder_.encode(records.first(count), open_);
    records = records.subspan(count);
    if (open_.size() >= stretch_bytes_) close_stretch();
  }
}

void PtHistory::forget() {
  encoder_.restart();
  closed_.clear();
  closed_bytes_ = 0;
  open_.clear();
}

void PtHistory::close_stretch() {
  encoder_.flush(open_);
  closed_bytes_ += open_.size();
  closed_.emplace_back(open_.begin(), open_.end());
  open_.clear();
  encoder_.synchronize(open_);
  drop_oldest(0);
}

/// Drops the oldest stretches until the total and `extra_bytes` fit the size.
void PtHistory::drop_oldest(std::uint64_t extra_bytes) {
  while (!closed_.empty() && closed_bytes_ + open_.size() + extra_bytes > size_bytes_) {
    closed_bytes_ -= closed_.front().size();
    overwritten_bytes_ += closed_.front().size();
    closed_.pop_front();
  }
}

std::vector<std::uint8_t> PtHistory::read_all(TraceeAddr pc) {
  std::vector<std::uint8_t> tail;
  encoder_.finish(pc, tail);
  drop_oldest(tail.size());
  std::vector<std::uint8_t> packets;
  packets.reserve(closed_bytes_ + open_.size() + tail.size());
  for (const std::vector<std::uint8_t>& stretch : closed_) {
    packets.insert(packets.end(), stretch.begin(), stretch.end());
  }
  packets.insert(packets.end(), open_.begin(), open_.end());
  packets.insert(packets.end(), tail.begin(), tail.end());
  unread_ = false;
  read_pc_ = pc;
  return packets;
}

}  // namespace backtrail::decoder
