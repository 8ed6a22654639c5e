// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The values that one thread's translated code recorded, and which of them belong to which log
/// entries.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace backtrail::decoder {

/// A thread writes its values into a ring and does not count how often it goes round. A value's
/// number ends with its index in the ring; the rest of the number means nothing between two stops.
///
/// Each log entry stands for a number of values (ValuePoints). Where a thread leaves translated
/// code, it is known which value is the newest one, and how many entries there are: an *anchor*.
/// From the newest anchor on, the values of the entries before it are found by counting backwards,
/// as far as the ring goes. Counts that do not agree with the indices at the anchors show that
/// something was misunderstood: those values and older ones are then not used.
class ValueStream {
 public:
  /// `ring` is borrowed, and has a power of two of values. The thread begins at index 0.
  explicit ValueStream(std::span<const std::uint64_t> ring) : ring_{ring} {}

  /// Call before the thread writes: no value is known until end_writing().
  void begin_writing() { is_written_ = true; }
  /// Call when the thread writes no more. `next` is the index of its next value.
  void end_writing(std::uint64_t next);
  /// Keeps the newest `most` values in memory of its own; none if the ring is being written.
  /// Nothing may be written afterwards.
  void own(std::uint64_t most);

  /// Returns the number after the newest value.
  [[nodiscard]] std::uint64_t end() const { return end_; }
  /// Returns a value; nullopt if it is not kept.
  [[nodiscard]] std::optional<std::uint64_t> at(std::uint64_t number) const;

  /// Adds an anchor, after end_writing(): the newest `left` values belong to a superblock that was
  /// not left by an exit.
  /// @param entries  Number of log entries up to there.
  /// @param oldest  Entries before this one are not kept.
  void add_anchor(std::uint64_t entries, std::uint64_t left, std::uint64_t oldest);

  /// From this entry on, the values of the entries begin at `value`; nullopt: they are not known.
  struct Stretch {
    std::uint64_t entry = 0;
    std::optional<std::uint64_t> value;
  };
  /// Returns where the values of the entries from `begin` on are, and forgets anchors that are not
  /// needed any more.
  /// @param sum  Returns how many values the entries [from, to) stand for.
  template <typename Sum>
  std::deque<Stretch> align(std::uint64_t begin, Sum sum);

 private:
  /// The entries before `entries` stand for the values before `values`. Those of the next entry
  /// begin at `next`.
  struct Anchor {
    std::uint64_t entries = 0;
    std::uint64_t values = 0;
    std::uint64_t next = 0;
  };
  /// The entries between two anchors.
  struct Interval {
    std::uint64_t from = 0;
    std::uint64_t counted = 0;  ///< Values that they stand for.
    Anchor end;
    std::optional<std::uint64_t> begins_at;  ///< Anchor::next of the anchor before, if known.
  };
  [[nodiscard]] std::uint64_t index_of(std::uint64_t number) const {
    return number & (ring_.size() - 1);
  }
  [[nodiscard]] bool fits(const Interval& interval) const;
  [[nodiscard]] std::deque<Stretch> place(std::span<const Interval> intervals) const;
  void note_mismatch(const Interval& interval) const;

  std::span<const std::uint64_t> ring_;
  std::vector<std::uint64_t> own_;  ///< The newest values, once the ring is not used any more.
  bool is_written_ = false;
  bool is_owned_ = false;
  std::uint64_t end_ = 0;
  std::optional<Anchor> before_ = Anchor{};  ///< The newest anchor that was aligned.
  std::deque<Anchor> anchors_;
};

template <typename Sum>
std::deque<ValueStream::Stretch> ValueStream::align(std::uint64_t begin, Sum sum) {
  std::vector<Interval> intervals;
  for (const Anchor& anchor : anchors_) {
    if (anchor.entries >= begin) {
      const bool follows = before_ && before_->entries >= begin;
      const std::uint64_t from = follows ? before_->entries : begin;
      intervals.push_back({from, sum(from, anchor.entries), anchor,
                           follows ? std::optional{before_->next} : std::nullopt});
    }
    before_ = anchor;
  }
  anchors_.clear();
  std::deque<Stretch> out = place(intervals);
  if (before_) out.push_back({before_->entries, std::nullopt});
  return out;
}

}  // namespace backtrail::decoder
