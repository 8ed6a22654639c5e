// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/constant_ranges.hpp"

#include <algorithm>
#include <iterator>

#include "arch/base/value_kind.hpp"

namespace backtrail::tracee::cache {
namespace {

using decoder::ValueFact;

/// Most changes that are kept for threads that have not been told of them.
constexpr std::size_t kMostChanges = 4096;

ValueFact fact(const ConstantRanges::Range& range, arch::ValueKind kind) {
  return {.pc = range.first, .value = range.second - range.first, .kind = kind};
}

constexpr ConstantRanges::Range kAll{TraceeAddr{}, TraceeAddr{~std::uint64_t{0}}};

}  // namespace

void ConstantRanges::note(const Range& range, bool is_constant) {
  if (changes_.size() == kMostChanges) {
    first_ += changes_.size();
    changes_.clear();
  }
  changes_.push_back({range, is_constant});
}

void ConstantRanges::lose(TraceeAddr begin, TraceeAddr end) {
  auto at = constant_.upper_bound(begin);
  if (at != constant_.begin() && std::prev(at)->second > begin) --at;
  while (at != constant_.end() && at->first < end) {
    const Range range = *at;
    at = constant_.erase(at);
    if (range.first < begin) constant_.emplace(range.first, begin);
    if (end < range.second) constant_.emplace(end, range.second);
    note({std::max(range.first, begin), std::min(range.second, end)}, false);
  }
}

void ConstantRanges::set(const std::vector<Range>& ranges) {
  TraceeAddr end;
  for (const Range& range : ranges) {
    lose(end, range.first);
    end = range.second;
    // Parts that are constant already stay so.
    for (TraceeAddr from = range.first; from < range.second;) {
      auto next = constant_.upper_bound(from);
      if (next != constant_.begin() && std::prev(next)->second > from) {
        from = std::prev(next)->second;
        continue;
      }
      const TraceeAddr to =
          next == constant_.end() ? range.second : std::min(range.second, next->first);
      constant_.emplace(from, to);
      note({from, to}, true);
      from = to;
    }
  }
  lose(end, kAll.second);
}

bool ConstantRanges::overlaps(TraceeAddr begin, TraceeAddr end) const {
  const auto next = constant_.lower_bound(end);
  return next != constant_.begin() && std::prev(next)->second > begin;
}

std::vector<ValueFact> ConstantRanges::tell(Told& told, arch::ValueKind kind) const {
  std::vector<ValueFact> out;
  if (told.changes < first_) {
    out.push_back(fact(kAll, arch::kVariableKind));
    for (const auto& range : constant_) out.push_back(fact(range, kind));
  } else {
    for (std::size_t i = told.changes - first_; i < changes_.size(); ++i) {
      out.push_back(fact(changes_[i].range, changes_[i].is_constant ? kind : arch::kVariableKind));
    }
  }
  told.changes = first_ + changes_.size();
  return out;
}

std::vector<ValueFact> ConstantRanges::all(arch::ValueKind kind) const {
  std::vector<ValueFact> out;
  for (const auto& range : constant_) out.push_back(fact(range, kind));
  return out;
}

std::vector<ValueFact> ConstantRanges::tell_lost(const Told& told) const {
  if (told.changes < first_) return {fact(kAll, arch::kVariableKind)};
  std::vector<ValueFact> out;
  for (std::size_t i = told.changes - first_; i < changes_.size(); ++i) {
    if (!changes_[i].is_constant) out.push_back(fact(changes_[i].range, arch::kVariableKind));
  }
  return out;
}

}  // namespace backtrail::tracee::cache
