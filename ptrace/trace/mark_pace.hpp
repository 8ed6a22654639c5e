// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decides whether a thread's context switches are worth recording: each recorded switch costs the
/// thread one to four microseconds. Recording pauses while a thread switches all the time.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace backtrail::tracee {

class MarkPace {
 public:
  explicit MarkPace(std::uint64_t now_ns) : last_ns_{now_ns} {}

  /// Call with the number of marks since the last call. Returns true if they are too many:
  /// recording then pauses for a while.
  bool too_many(std::size_t marks, std::uint64_t now_ns) {
    const bool out = many(marks, now_ns);
    if (out) rests_until_ns_ = now_ns + rest_ns_;
    rest_ns_ = out ? std::min(rest_ns_ * 2, kLongestRestNs) : kRestNs;
    return out;
  }
  /// Call before recording begins, with the number of marks there would have been so far. Returns
  /// true if recording should wait until the thread is calm. No pause is set, because programs
  /// begin with a burst and may be calm soon.
  bool busy_at_first(std::size_t marks, std::uint64_t now_ns) { return many(marks, now_ns); }
  /// Returns true if the pause has lasted long enough; rested() then tells whether the thread is
  /// calm.
  [[nodiscard]] bool may_be_rested(std::uint64_t now_ns) const { return now_ns >= rests_until_ns_; }
  /// Call with the number of marks there would have been since the last call of any of these.
  /// Returns true if the thread is calm.
  bool rested(std::size_t marks, std::uint64_t now_ns) { return !many(marks, now_ns); }

  static constexpr std::size_t kFewest = 50;
  /// More than one mark in this time is too many: marks then cost 2 % or more.
  static constexpr std::uint64_t kShortestNs = 100'000;
  /// Pause: some thirty times as long as it takes to see that there are too many marks.
  static constexpr std::uint64_t kRestNs = 320'000'000;
  /// Longest pause. Pauses in a row double up to this, for threads that are calm only now and then:
  /// after the last mark, the kernel itself slows switches a little for a second.
  static constexpr std::uint64_t kLongestRestNs = 16 * kRestNs;

 private:
  bool many(std::size_t marks, std::uint64_t now_ns) {
    const std::uint64_t elapsed = now_ns - last_ns_;
    last_ns_ = now_ns;
    return marks > kFewest && marks * kShortestNs > elapsed;
  }

  std::uint64_t last_ns_;
  std::uint64_t rest_ns_ = kRestNs;
  std::uint64_t rests_until_ns_ = 0;
};

}  // namespace backtrail::tracee
