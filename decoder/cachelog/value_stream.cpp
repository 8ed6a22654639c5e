// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/value_stream.hpp"

#include <algorithm>

#include "arch/base/log.hpp"

namespace backtrail::decoder {
namespace {

/// Part of a ring whose oldest values may have been overwritten by some that do not count yet.
constexpr std::size_t kOverwrittenPart = 1024;

}  // namespace

void ValueStream::end_writing(std::uint64_t next) {
  end_ += index_of(next - end_);
  is_written_ = false;
}

void ValueStream::own(std::uint64_t most) {
  std::vector<std::uint64_t> kept;
  const std::uint64_t count = std::min<std::uint64_t>(most, ring_.size());
  for (std::uint64_t distance = count; distance != 0; --distance) {
    if (const auto value = at(end_ - distance)) kept.push_back(*value);
  }
  own_ = std::move(kept);
  is_owned_ = true;
}

std::optional<std::uint64_t> ValueStream::at(std::uint64_t number) const {
  const std::uint64_t distance = end_ - number;
  if (distance == 0) return std::nullopt;
  if (is_owned_) {
    return distance <= own_.size() ? std::optional{own_[own_.size() - distance]} : std::nullopt;
  }
  if (is_written_ || distance > ring_.size() - ring_.size() / kOverwrittenPart) return std::nullopt;
  return ring_[index_of(number)];
}

void ValueStream::add_anchor(std::uint64_t entries, std::uint64_t left, std::uint64_t oldest) {
  for (; !anchors_.empty() && anchors_.front().entries < oldest; anchors_.pop_front()) {
    before_ = anchors_.front();
  }
  anchors_.push_back({entries, end_ - left, end_});
}

bool ValueStream::fits(const Interval& interval) const {
  if (!interval.begins_at) return true;
  return index_of(*interval.begins_at + interval.counted) == index_of(interval.end.values);
}

/// Counts backwards from the newest value.
std::deque<ValueStream::Stretch> ValueStream::place(std::span<const Interval> intervals) const {
  std::deque<Stretch> out;
  std::optional<std::uint64_t> end;
  if (!is_written_) end = end_;
  for (auto next = intervals.rbegin(); next != intervals.rend(); ++next) {
    const Interval& interval = *next;
    if (!fits(interval)) {
      note_mismatch(interval);
      end.reset();
    } else if (end) {
      *end -= (interval.end.next - interval.end.values) + interval.counted;
    }
    if (interval.from != interval.end.entries) out.push_front({interval.from, end});
  }
  return out;
}

void ValueStream::note_mismatch(const Interval& interval) const {
  log::decoder().debug("op=align_values entries {} to {} stand for {} values, index {} to {}",
                       interval.from, interval.end.entries, interval.counted,
                       index_of(interval.begins_at.value_or(0)), index_of(interval.end.values));
}

}  // namespace backtrail::decoder
