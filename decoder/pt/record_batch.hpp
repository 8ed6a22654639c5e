// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Records for a consumer, some of which may have to be taken back.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Writes branch(from, to) with as few stores as possible. `out` may be uninitialised.
inline void put_branch(Record* out, TraceeAddr from, TraceeAddr to) {
  static_assert(RecordKind::kBranch == RecordKind{} && GapReason::kNone == GapReason{} &&
                LossBound::kExact == LossBound{});
  constexpr std::uint64_t kRest = 0;
  static_assert(sizeof *out == 2 * sizeof from + sizeof kRest);
  out->from = from;
  out->to = to;
  std::memcpy(&out->kind, &kRest, sizeof kRest);
}

/// A buffer of records. Room after the end is always writable; set_end() states how much of it
/// counts.
class RecordBatch {
 public:
  /// Records that may be written after end() at any time.
  static constexpr std::size_t kRoom = 256;

  enum class HandsOn : std::uint8_t { kOften, kNever };

  /// Borrows `consumer`.
  explicit RecordBatch(TraceConsumer& consumer, HandsOn when = HandsOn::kOften)
      : records_(2 * kWorthHandingOn), consumer_{consumer}, when_{when} {}

  [[nodiscard]] Record* end() { return records_.data() + size_; }
  /// Sets the end of the valid records and makes room after it. Invalidates pointers.
  void set_end(const Record* end) {
    size_ = static_cast<std::size_t>(end - records_.data());
    if (records_.size() - size_ < kRoom) records_.resize(2 * records_.size());
  }
  /// Returns the place after which hardly any room is left.
  [[nodiscard]] const Record* full() const { return records_.data() + records_.size() - kRoom / 2; }
  /// Returns true if set_end() must be called.
  [[nodiscard]] bool lacks_room(const Record* end) const { return end > full(); }
  void push(const Record& record) {
    *end() = record;
    set_end(end() + 1);
  }
  void append(std::span<const Record> records) {
    for (const Record& record : records) push(record);
  }
  /// Returns the number of records so far, including those passed on.
  [[nodiscard]] std::size_t position() const { return handed_on_ + size_; }
  /// Takes back the newest `count` records.
  void truncate(std::size_t count) { size_ -= count; }
  /// Removes and returns the records after `position` that were not passed on.
  [[nodiscard]] std::vector<Record> take_back(std::size_t position) {
    const std::size_t kept = position > handed_on_ ? position - handed_on_ : 0;
    std::vector<Record> taken{records_.data() + kept, records_.data() + size_};
    size_ = kept;
    return taken;
  }
  [[nodiscard]] const Record& back() const { return records_[size_ - 1]; }

  /// Passes on all but the last `kept` records, if they are enough for a call.
  void hand_on(std::size_t kept) {
    if (when_ == HandsOn::kOften && size_ - kept >= kWorthHandingOn) flush(kept);
  }
  /// Passes on everything, and then `records` without the last `kept`, which stay here.
  void pass_on(std::span<const Record> records, std::size_t kept) {
    flush();
    hand_out(records.first(records.size() - kept));
    append(records.last(kept));
  }
  /// Call before all records after `position` are written again. Those already passed on are not
  /// passed on again.
  void go_back(std::size_t position) {
    repeated_ += handed_on_ - position;
    handed_on_ = position;
    size_ = 0;
  }
  [[nodiscard]] std::span<const Record> all() const { return std::span{records_}.first(size_); }
  void clear() { size_ = 0; }
  void flush(std::size_t kept = 0) {
    const std::size_t count = size_ - kept;
    if (count == 0) return;
    hand_out(std::span{records_}.first(count));
    std::copy_n(records_.begin() + static_cast<std::ptrdiff_t>(count), kept, records_.begin());
    size_ = kept;
  }

 private:
  void hand_out(std::span<const Record> records) {
    handed_on_ += records.size();
    const std::size_t known = std::min(repeated_, records.size());
    repeated_ -= known;
    if (known != records.size()) consumer_.consume(records.subspan(known));
  }

  /// Fits in the CPU's second-level cache.
  static constexpr std::size_t kWorthHandingOn = 4096;

  std::vector<Record> records_;
  std::size_t size_ = 0;
  std::size_t handed_on_ = 0;
  std::size_t repeated_ = 0;  ///< Number of coming records that were passed on before.
  TraceConsumer& consumer_;
  HandsOn when_;
};

}  // namespace backtrail::decoder
