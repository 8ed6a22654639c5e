// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/likely_targets.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::tracee::cache {
namespace {

/// Least number of samples by which a branch is judged.
constexpr std::uint32_t kEnough = 12;
/// An exit is the usual way if at least this many of eight executions that reach it leave by it.
constexpr std::uint32_t kMostOfEight = 5;
/// Number of times that a branch's target may be set.
constexpr std::uint32_t kMostChanges = 4;
/// Most branches that are remembered: programs that keep generating code have ever new ones.
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
      // At least seven of ten samples have the target if those exceed all others by four of ten.
      const bool mostly_there = 10 * exit.count.majority >= 4 * exit.count.seen;
      return set(what.from, mostly_there ? std::optional{exit.count.target} : std::nullopt);
    }
    case decoder::LoggedExitKind::kDirect:
      return is_conditional(what.from) && set(what.from, what.to);
    case decoder::LoggedExitKind::kContinue: {
      // The exit leaves where the superblock follows a branch that was not taken this time.
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
    // The final exit of a superblock is emitted before its side exits: it has the lowest id.
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
