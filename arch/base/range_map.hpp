// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranges of addresses without overlaps, each with a value.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "arch/base/address.hpp"

namespace backtrail {

template <typename Value>
class RangeMap {
 public:
  struct Rest {
    TraceeAddr end;
    Value value;
  };
  /// By the ranges' first addresses.
  using Ranges = std::map<TraceeAddr, Rest>;

  [[nodiscard]] const Ranges& ranges() const { return ranges_; }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  /// Returns the range that has the address, or else the next one.
  [[nodiscard]] typename Ranges::const_iterator from(TraceeAddr address) const {
    return first_of(ranges_, address);
  }
  /// Returns true if a part of [begin, end) is in a range.
  [[nodiscard]] bool overlaps(TraceeAddr begin, TraceeAddr end) const {
    if (begin >= end) return false;
    const auto first = from(begin);
    return first != ranges_.end() && first->first < end;
  }

  /// Takes [begin, end) out of all ranges.
  /// @param removed  Called with the first address and the end of each part that was in a range.
  template <typename Use>
  void remove(TraceeAddr begin, TraceeAddr end, const Use& removed) {
    if (begin >= end) return;
    auto at = first_of(ranges_, begin);
    while (at != ranges_.end() && at->first < end) {
      const TraceeAddr first = at->first;
      const Rest rest = at->second;
      at = ranges_.erase(at);
      if (first < begin) ranges_.emplace(first, Rest{begin, rest.value});
      if (end < rest.end) ranges_.emplace(end, rest);
      removed(std::max(first, begin), std::min(rest.end, end));
    }
  }
  void remove(TraceeAddr begin, TraceeAddr end) {
    remove(begin, end, [](TraceeAddr, TraceeAddr) {});
  }

  /// Makes ranges with the value of those parts of [begin, end) that are in no range.
  /// @param most   The most ranges that there may be then; what would be one more is left out.
  /// @param added  Called with the first address and the end of each new range.
  template <typename Use>
  void fill(TraceeAddr begin, TraceeAddr end, const Value& value, std::size_t most,
            const Use& added) {
    for (auto next = first_of(ranges_, begin); begin < end && size() < most; ++next) {
      const bool is_last = next == ranges_.end() || next->first >= end;
      const TraceeAddr to = is_last ? end : next->first;
      if (begin < to) {
        ranges_.emplace_hint(next, begin, Rest{to, value});
        added(begin, to);
      }
      if (is_last) return;
      begin = next->second.end;
    }
  }

 private:
  template <typename Map>
  static auto first_of(Map& ranges, TraceeAddr address) {
    const auto next = ranges.upper_bound(address);
    const bool has_it = next != ranges.begin() && std::prev(next)->second.end > address;
    return has_it ? std::prev(next) : next;
  }

  Ranges ranges_;
};

}  // namespace backtrail
