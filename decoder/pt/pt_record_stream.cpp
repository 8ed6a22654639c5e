// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_record_stream.hpp"

#include <utility>

#include "decoder/pt/pt_scanner.hpp"

namespace backtrail::decoder {

void PtRecordStream::append(std::span<const std::uint8_t> packets) {
  bytes_.insert(bytes_.end(), packets.begin(), packets.end());
}

void PtRecordStream::begin_anew() {
  bytes_.clear();
  seen_ = 0;
  emitted_ = 0;
  skipped_ = false;
}

void PtRecordStream::hole() {
  flush();
  begin_anew();
  hole_ = true;
}

void PtRecordStream::drop_finished() {
  std::optional<std::size_t> last;
  for (auto next = find_psb(bytes_); next; next = find_psb(bytes_, *next + 16)) last = next;
  if (!last || *last == 0) return;
  // While tracing is on, the known part of the last branches depends on where decoding began.
  std::vector<Record> records;
  if (!decoder_.decode(std::span{bytes_}.subspan(*last), records) || records.empty()) return;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(*last));
  seen_ = bytes_.size();
  emitted_ = records.size();
}

void PtRecordStream::skip() {
  constexpr std::size_t kWorthDropping = std::size_t{64} << 10U;
  if (seen_ == bytes_.size()) return;
  seen_ = bytes_.size();
  skipped_ = true;
  if (seen_ > kWorthDropping) drop_finished();
  started_ = true;  // A later consumer has been told where its trace begins.
  hole_ = false;
  inserted_.reset();
}

/// Returns the first record of a stretch, which only states where the stretch begins.
Record PtRecordStream::joined(const Record& start) const {
  if (!started_ && !hole_) return start;
  return gap(GapReason::kOverflow, TraceeAddr{}, start.to);
}

void PtRecordStream::emit(std::span<const Record> records) {
  if (const auto inserted = inserted_; inserted && !records.empty()) {
    inserted_.reset();
    const Record& first = records.front();
    if (first.kind != RecordKind::kBranch && first.to == inserted->to) {
      records = records.subspan(1);
      hole_ = false;
    }
  }
  if (records.empty()) return;
  if (records.front().reason == GapReason::kStart) {
    const Record first = joined(records.front());
    consumer_.consume(std::span{&first, 1});
    records = records.subspan(1);
  }
  hole_ = false;
  started_ = true;
  if (!records.empty()) consumer_.consume(records);
}

void PtRecordStream::flush() {
  if (seen_ == bytes_.size()) return;
  std::vector<Record> records;
  if (std::exchange(skipped_, false)) {
    decoder_.decode(std::span{bytes_}.first(seen_), records);
    emitted_ = records.size();
    records.clear();
  }
  const bool finished = decoder_.decode(bytes_, records);
  seen_ = bytes_.size();
  if (records.size() > emitted_) {
    emit(std::span{records}.subspan(emitted_));
    emitted_ = records.size();
  }
  if (finished) drop_finished();
}

void PtRecordStream::insert(const Record& record) {
  flush();
  consumer_.consume(std::span{&record, 1});
  inserted_ = record;
  started_ = true;
  // Packets of other code cannot be continued.
  if (record.reason == GapReason::kExec) begin_anew();
}

}  // namespace backtrail::decoder
