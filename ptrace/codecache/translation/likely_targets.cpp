// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/likely_targets.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::tracee::cache {
namespace {

/// Samples of a superblock that tell which way it goes.
constexpr std::uint32_t kEnough = 12;
/// A branch is worth following if it goes there at least that often in 8 times.
constexpr std::uint32_t kMostOfEight = 5;
/// A branch that changes its target is followed that many times.
constexpr std::uint32_t kMostChanges = 4;
/// Branches known at a time. Programs that make code for ever have ever new ones.
constexpr std::size_t kMostBranches = 65536;

}  // namespace

std::optional<TraceeAddr> LikelyTargets::find(TraceeAddr branch) const {
  const auto known = targets_.find(branch);
  return known != targets_.end() ? known->second.target : std::nullopt;
}

bool LikelyTargets::set(TraceeAddr branch, std::optional<TraceeAddr> target) {
  const auto known = targets_.find(branch);
  if (known == targets_.end() && !target) return false;
  if (targets_.size() == kMostBranches) targets_.clear();
  Target& likely = targets_[branch];
  if (likely.target == target || likely.changes == kMostChanges) return false;
  likely.target = target;
  ++likely.changes;
  return true;
}

bool LikelyTargets::learn_from(const SeenExit& exit, const decoder::ExitTable& table,
                               const IsConditional& is_conditional) {
  const decoder::LoggedExit& what = exit.what;
  switch (what.kind) {
    case decoder::LoggedExitKind::kIndirect: {
      // Seven of ten, when the majority is four of ten more than all others.
      const bool mostly_there = 10 * exit.count.majority >= 4 * exit.count.seen;
      return set(what.from, mostly_there ? std::optional{exit.count.target} : std::nullopt);
    }
    case decoder::LoggedExitKind::kDirect:
      return is_conditional(what.from) && set(what.from, what.to);
    case decoder::LoggedExitKind::kContinue: {
      // The branch that the superblock follows next is the one that was not taken.
      const auto all = table.block(what.block_number);
      const std::size_t passed = what.block.branches.size();
      return passed < all.branches.size() && set(all.branch(passed).first, std::nullopt);
    }
  }
  return false;
}

bool LikelyTargets::learn(std::vector<SeenExit> exits, const decoder::ExitTable& table,
                          const IsConditional& is_conditional) {
  std::uint32_t reached = 0;
  for (const SeenExit& exit : exits) reached += exit.count.seen;
  std::sort(exits.begin(), exits.end(), [](const SeenExit& a, const SeenExit& b) {
    // The last one of a superblock was made first.
    return std::pair{a.what.executed, b.number} < std::pair{b.what.executed, a.number};
  });
  for (const SeenExit& exit : exits) {
    if (reached < kEnough) return false;
    if (8 * exit.count.seen >= kMostOfEight * reached) {
      return learn_from(exit, table, is_conditional);
    }
    reached -= exit.count.seen;
  }
  return false;
}

}  // namespace backtrail::tracee::cache
