// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/constant_ranges.hpp"

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
  constant_.remove(begin, end, [this](TraceeAddr from, TraceeAddr to) { note({from, to}, false); });
}

void ConstantRanges::set(const std::vector<Range>& ranges) {
  TraceeAddr end;
  for (const Range& range : ranges) {
    lose(end, range.first);
    end = range.second;
    // Parts that are constant already stay so.
    constant_.fill(range.first, range.second, {}, ~std::size_t{0},
                   [this](TraceeAddr from, TraceeAddr to) {
                     note({from, to}, true);
                   });
  }
  lose(end, kAll.second);
}

std::vector<ValueFact> ConstantRanges::all(arch::ValueKind kind) const {
  std::vector<ValueFact> out;
  for (const auto& [begin, rest] : constant_.ranges()) out.push_back(fact({begin, rest.end}, kind));
  return out;
}

std::vector<ValueFact> ConstantRanges::tell(Told& told, arch::ValueKind kind) const {
  std::vector<ValueFact> out;
  if (told.changes < first_) {
    out = all(kind);
    out.insert(out.begin(), fact(kAll, arch::kVariableKind));
  } else {
    for (std::size_t i = told.changes - first_; i < changes_.size(); ++i) {
      out.push_back(fact(changes_[i].range, changes_[i].is_constant ? kind : arch::kVariableKind));
    }
  }
  told.changes = first_ + changes_.size();
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
