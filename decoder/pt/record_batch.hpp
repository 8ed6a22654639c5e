#pragma once
/// @file
/// Records on their way to a consumer, some of which may have to be taken back.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Writes branch(from, to), in as few stores as there can be. `out` need not be a record yet.
inline void put_branch(Record* out, TraceeAddr from, TraceeAddr to) {
  static_assert(RecordKind::kBranch == RecordKind{} && GapReason::kNone == GapReason{} &&
                LossBound::kExact == LossBound{});
  constexpr std::uint64_t kRest = 0;
  static_assert(sizeof *out == 2 * sizeof from + sizeof kRest);
  out->from = from;
  out->to = to;
  std::memcpy(&out->kind, &kRest, sizeof kRest);
}

/// Room at the end is always there to be written to; how much of it counts is said afterwards.
class RecordBatch {
 public:
  /// Records that can be written behind end() without asking.
  static constexpr std::size_t kRoom = 256;

  enum class HandsOn : std::uint8_t { kOften, kNever };

  /// `consumer` is borrowed.
  explicit RecordBatch(TraceConsumer& consumer, HandsOn when = HandsOn::kOften)
      : records_(2 * kWorthHandingOn), consumer_{consumer}, when_{when} {}

  [[nodiscard]] Record* end() { return records_.data() + size_; }
  /// Everything before `end` counts from now on. Makes room. Invalidates pointers.
  void set_end(const Record* end) {
    size_ = static_cast<std::size_t>(end - records_.data());
    if (records_.size() - size_ < kRoom) records_.resize(2 * records_.size());
  }
  /// Behind it there is hardly any room.
  [[nodiscard]] const Record* full() const { return records_.data() + records_.size() - kRoom / 2; }
  /// It is time for set_end().
  [[nodiscard]] bool lacks_room(const Record* end) const { return end > full(); }
  void push(const Record& record) {
    *end() = record;
    set_end(end() + 1);
  }
  void append(std::span<const Record> records) {
    for (const Record& record : records) push(record);
  }
  /// How many records there were, those that were handed on included.
  [[nodiscard]] std::size_t position() const { return handed_on_ + size_; }
  /// Takes back the newest `count`.
  void truncate(std::size_t count) { size_ -= count; }
  /// Takes back everything behind `position`, as far as it was not handed on. Returns it.
  [[nodiscard]] std::vector<Record> take_back(std::size_t position) {
    const std::size_t kept = position > handed_on_ ? position - handed_on_ : 0;
    std::vector<Record> taken{records_.data() + kept, records_.data() + size_};
    size_ = kept;
    return taken;
  }
  [[nodiscard]] const Record& back() const { return records_[size_ - 1]; }

  /// Hands on all but the last `kept`, if that is worth a call.
  void hand_on(std::size_t kept) {
    if (when_ == HandsOn::kOften && size_ - kept >= kWorthHandingOn) flush(kept);
  }
  /// Hands on what there is, and then `records` but for the last `kept` of them, which stay here.
  void pass_on(std::span<const Record> records, std::size_t kept) {
    flush();
    hand_out(records.first(records.size() - kept));
    append(records.last(kept));
  }
  /// Everything behind `position` will come again. What was handed on of it is not handed on twice.
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

  /// Fits the CPU's second cache.
  static constexpr std::size_t kWorthHandingOn = 4096;

  std::vector<Record> records_;
  std::size_t size_ = 0;
  std::size_t handed_on_ = 0;
  std::size_t repeated_ = 0;  ///< So many that were handed on before will come again.
  TraceConsumer& consumer_;
  HandsOn when_;
};

}  // namespace backtrail::decoder
