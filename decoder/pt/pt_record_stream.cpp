#include "decoder/pt/pt_record_stream.hpp"

#include <utility>

#include "decoder/pt/pt_scanner.hpp"

namespace backtrail::decoder {

void PtRecordStream::append(std::span<const std::uint8_t> packets) {
  bytes_.insert(bytes_.end(), packets.begin(), packets.end());
}

void PtRecordStream::begin_anew() {
  bytes_.clear();
  done_ = 0;
}

void PtRecordStream::hole() {
  flush();
  begin_anew();
  hole_ = true;
}

void PtRecordStream::keep_from_last_psb() {
  std::optional<std::size_t> last;
  for (auto next = find_psb(bytes_); next; next = find_psb(bytes_, *next + 16)) last = next;
  done_ = bytes_.size();
  if (!last || *last == 0) return;
  // One that is cut off, or behind which tracing is off, is no place to begin at.
  std::vector<Record> records;
  decoder_.decode(std::span{bytes_}.subspan(*last), records);
  if (records.empty()) return;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(*last));
  done_ = bytes_.size();
}

void PtRecordStream::skip() {
  if (done_ == bytes_.size()) return;
  keep_from_last_psb();
  started_ = true;  // Whoever comes later has been told where its trace begins.
  hole_ = false;
  inserted_.reset();
}

/// The first record of a stretch says no more than where it begins.
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
  if (done_ == bytes_.size()) return;
  std::vector<Record> before;
  decoder_.decode(std::span{bytes_}.first(done_), before);
  std::vector<Record> all;
  decoder_.decode(bytes_, all);
  if (all.size() > before.size()) emit(std::span{all}.subspan(before.size()));
  keep_from_last_psb();
}

void PtRecordStream::insert(const Record& record) {
  flush();
  consumer_.consume(std::span{&record, 1});
  inserted_ = record;
  started_ = true;
  // Packets of other code cannot be followed on from here.
  if (record.reason == GapReason::kExec) begin_anew();
}

}  // namespace backtrail::decoder
