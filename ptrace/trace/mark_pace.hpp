#pragma once
/// @file
/// Whether a thread's context switches are worth being seen: each that is costs it one to four
/// microseconds. One that switches all the time is not seen until it does so less.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace backtrail::tracee {

class MarkPace {
 public:
  explicit MarkPace(std::uint64_t now_ns) : last_ns_{now_ns} {}

  /// So many marks came since the last call. True: no more of them for a while.
  bool too_many(std::size_t marks, std::uint64_t now_ns) {
    const bool out = many(marks, now_ns);
    if (out) rests_until_ns_ = now_ns + rest_ns_;
    rest_ns_ = out ? std::min(rest_ns_ * 2, kLongestRestNs) : kRestNs;
    return out;
  }
  /// So many marks there would have been since the beginning. True: it is not seen before it is
  /// calm. Nothing is known of it yet, so it may be soon: programs begin with a burst.
  bool busy_at_first(std::size_t marks, std::uint64_t now_ns) { return many(marks, now_ns); }
  /// That was long enough, if the thread has become calm.
  [[nodiscard]] bool may_be_rested(std::uint64_t now_ns) const { return now_ns >= rests_until_ns_; }
  /// So many marks there would have been since the last call of any of these. True: it is calm.
  bool rested(std::size_t marks, std::uint64_t now_ns) { return !many(marks, now_ns); }

  static constexpr std::size_t kFewest = 50;
  /// A mark in so long is too many: then they cost 2 % or more.
  static constexpr std::uint64_t kShortestNs = 100'000;
  /// Some thirty times what it takes to see that there are too many.
  static constexpr std::uint64_t kRestNs = 320'000'000;
  /// One rest after the other takes at least twice as long, for threads that are calm now and then:
  /// the kernel itself slows switches a little for a second after the last mark.
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
