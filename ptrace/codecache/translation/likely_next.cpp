// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/likely_next.hpp"

#include <algorithm>

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::translate::Exit;
using arch::cpu::translate::ExitKind;

/// Less likely code is left to a miss.
constexpr Chance kWorthIt = 150;

/// How many of a thousand places of each kind were executed, after superblocks that were, in a
/// first run of a short program.
constexpr Chance kJumpOrCall = 920;
constexpr Chance kFallThrough = 830;
constexpr Chance kReturn = 900;
constexpr Chance kPointer = 950;
constexpr Chance kBackwards = 780;
constexpr Chance kNearForwards = 750;  ///< Less than kNear bytes.
constexpr Chance kForwards = 450;
constexpr Chance kFarForwards = 240;  ///< kFar bytes or more: often error handling.
constexpr std::uint64_t kNear = 64;
constexpr std::uint64_t kFar = 1024;

Chance both(Chance first, Chance second) {
  return first * second / kCertain;
}

Chance conditional_jump(const Exit& exit) {
  if (exit.to <= exit.from) return kBackwards;
  const std::uint64_t distance = exit.to - exit.from;
  if (distance < kNear) return kNearForwards;
  return distance < kFar ? kForwards : kFarForwards;
}

}  // namespace

LikelyCode likely_after(const Exit& exit, std::size_t index, Chance chance) {
  Chance here = kFallThrough;
  if (exit.kind == ExitKind::kDirect) here = index == 0 ? kJumpOrCall : conditional_jump(exit);
  return {.at = exit.to, .way = LikelyCode::Way::kDirect, .chance = both(chance, here)};
}

Chance after_return(Chance chance) {
  return both(chance, kReturn);
}

Chance after_pointer(Chance chance) {
  return both(chance, kPointer);
}

void LikelyNext::clear() {
  heap_.clear();
  added_ = 0;
}

void LikelyNext::add(std::span<const LikelyCode> more) {
  for (const LikelyCode& code : more) {
    if (code.chance < kWorthIt) continue;
    heap_.push_back({code, added_++});
    std::push_heap(heap_.begin(), heap_.end(), is_behind);
  }
}

std::optional<LikelyCode> LikelyNext::take() {
  if (heap_.empty()) return std::nullopt;
  std::pop_heap(heap_.begin(), heap_.end(), is_behind);
  const LikelyCode taken = heap_.back().code;
  heap_.pop_back();
  return taken;
}

bool LikelyNext::is_behind(const Waiting& a, const Waiting& b) {
  if (a.code.chance != b.code.chance) return a.code.chance < b.code.chance;
  return a.number > b.number;
}

}  // namespace backtrail::tracee::cache
