// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/constant_memory.hpp"

#include <algorithm>

#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {

void ConstantMemory::take(const ValueFact& fact) {
  if (!arch::is_of_memory(fact.kind)) return;
  is_told_ = true;
  last_ = {};
  const TraceeAddr end = fact.pc + std::min(fact.value, ~fact.pc.value());
  if (fact.kind == arch::kVariableKind) return ranges_.remove(fact.pc, end);
  // Memory that has been constant for longer stays so.
  ranges_.fill(fact.pc, end, {fact.record, fact.kind}, kMost, [](TraceeAddr, TraceeAddr) {});
}

std::uint64_t ConstantMemory::bytes_at(std::uint64_t record, TraceeAddr address,
                                       std::uint64_t most) const {
  const bool is_in_last = address >= last_begin_ && address < last_.end;
  if (is_in_last && most <= last_.end - address && record > last_.value.record) return most;
  std::uint64_t count = 0;
  for (auto at = ranges_.from(address); count < most && at != ranges_.ranges().end(); ++at) {
    const auto& [begin, rest] = *at;
    const auto& [since, kind] = rest.value;
    const bool holds = since < record || (since == record && kind == arch::kConstantKind);
    if (!holds || begin > address + count) break;
    if (count == 0) {
      last_begin_ = begin;
      last_ = rest;
    }
    count = rest.end - address;
  }
  return std::min(count, most);
}

std::vector<ValueFact> ConstantMemory::facts() const {
  std::vector<ValueFact> out;
  for (const auto& [begin, rest] : ranges_.ranges()) {
    out.push_back({rest.value.record, begin, rest.end - begin, rest.value.kind});
  }
  std::ranges::stable_sort(out, {}, &ValueFact::record);
  if (is_told_ && out.empty()) out.push_back({0, TraceeAddr{}, 0, arch::kVariableKind});
  return out;
}

}  // namespace backtrail::decoder
