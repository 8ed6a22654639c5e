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

/// Values are numbered from the thread's first one on. What is not kept stays numbered.
///
/// Each log entry stands for a number of values (ValuePoints). Where a thread leaves translated
/// code both are counted (an *anchor*), so that the values of the entries before it are known by
/// counting backwards. Counts that do not agree show that something was misunderstood; those values
/// are then not used.
class ValueStream {
 public:
  /// Appends values without copying them. They must stay in place until forget() or own().
  void hold(std::span<const std::uint64_t> values);
  /// Call before `memory` is overwritten: drops all values as old as those held there, and older.
  void forget(std::span<const std::uint64_t> memory);
  /// Keeps the newest `most` values in memory of its own.
  void own(std::uint64_t most);

  /// Returns the number after the newest value.
  [[nodiscard]] std::uint64_t end() const { return end_; }
  /// Returns a value; nullopt if it is not kept.
  [[nodiscard]] std::optional<std::uint64_t> at(std::uint64_t number) const;

  /// The first `entries` log entries stand for the values before `values`. The next entry's begin
  /// at `next`.
  struct Anchor {
    std::uint64_t entries = 0;
    std::uint64_t values = 0;
    std::uint64_t next = 0;
  };
  /// Adds an anchor: the newest `left` values belong to a superblock that was not left by an exit.
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
  struct Piece {
    std::uint64_t first = 0;
    std::span<const std::uint64_t> values;
    std::vector<std::uint64_t> copied;
  };
  void note_mismatch(const Anchor& anchor, std::uint64_t begin, std::uint64_t counted) const;
  void drop_before(std::uint64_t number);

  std::deque<Piece> pieces_;
  std::uint64_t end_ = 0;
  std::optional<Anchor> before_;  ///< The newest anchor that was aligned.
  std::deque<Anchor> anchors_;
};

template <typename Sum>
std::deque<ValueStream::Stretch> ValueStream::align(std::uint64_t begin, Sum sum) {
  std::deque<Stretch> out;
  for (const Anchor& anchor : anchors_) {
    if (anchor.entries >= begin) {
      const bool follows = before_ && before_->entries >= begin;
      const std::uint64_t from = follows ? before_->entries : begin;
      const std::uint64_t counted = sum(from, anchor.entries);
      const bool fits =
          counted <= anchor.values && (!follows || before_->next + counted == anchor.values);
      if (!fits) note_mismatch(anchor, from, counted);
      if (anchor.entries != from) {
        out.push_back({from, fits ? std::optional{anchor.values - counted} : std::nullopt});
      }
    }
    before_ = anchor;
  }
  if (before_) out.push_back({before_->entries, std::nullopt});
  anchors_.clear();
  return out;
}

}  // namespace backtrail::decoder
