// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/constant_memory.hpp"

#include <algorithm>
#include <iterator>

#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {

void ConstantMemory::remove(std::uint64_t begin, std::uint64_t end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != ranges_.end() && at->first < end) {
    const std::uint64_t first = at->first;
    const Range range = at->second;
    at = ranges_.erase(at);
    if (first < begin) ranges_[first] = {begin, range.record, range.kind};
    if (range.end > end) ranges_[end] = range;
  }
}

void ConstantMemory::take(const ValueFact& fact) {
  if (!arch::is_of_memory(fact.kind)) return;
  is_told_ = true;
  last_ = {};
  const std::uint64_t begin = fact.pc.value();
  const std::uint64_t end = begin + std::min(fact.value, ~begin);
  if (fact.kind == arch::kVariableKind) return remove(begin, end);
  // Memory that has been constant for longer stays so.
  for (std::uint64_t from = begin; from < end && ranges_.size() < kMost;) {
    auto next = ranges_.upper_bound(from);
    if (next != ranges_.begin() && std::prev(next)->second.end > from) {
      from = std::prev(next)->second.end;
      continue;
    }
    const std::uint64_t to = next == ranges_.end() ? end : std::min(end, next->first);
    ranges_[from] = {to, fact.record, fact.kind};
    from = to;
  }
}

std::uint64_t ConstantMemory::bytes_at(std::uint64_t record, TraceeAddr address,
                                       std::uint64_t most) const {
  const std::uint64_t first = address.value();
  if (first >= last_begin_ && first < last_.end && most <= last_.end - first &&
      record > last_.record) {
    return most;
  }
  std::uint64_t count = 0;
  auto at = ranges_.upper_bound(first);
  if (at == ranges_.begin()) return 0;
  last_begin_ = std::prev(at)->first;
  last_ = std::prev(at)->second;
  for (--at; count < most && at != ranges_.end(); ++at) {
    const Range& range = at->second;
    const bool holds =
        range.record < record || (range.record == record && range.kind == arch::kConstantKind);
    if (!holds || at->first > first + count || range.end <= first + count) break;
    count = range.end - first;
  }
  return std::min(count, most);
}

std::vector<ValueFact> ConstantMemory::facts() const {
  std::vector<ValueFact> out;
  for (const auto& [begin, range] : ranges_) {
    out.push_back({range.record, TraceeAddr{begin}, range.end - begin, range.kind});
  }
  std::ranges::stable_sort(out, {}, &ValueFact::record);
  if (is_told_ && out.empty()) out.push_back({0, TraceeAddr{}, 0, arch::kVariableKind});
  return out;
}

}  // namespace backtrail::decoder
