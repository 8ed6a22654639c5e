// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/exit_profile.hpp"

#include <algorithm>

namespace backtrail::tracee::cache {

void ExitProfile::sample(std::span<const std::uint32_t> log, const TargetOf& target_of) {
  if (skipped_ != 0) {
    --skipped_;
    return;
  }
  if (log.size() < 2 || ++logs_ % every_ != 0) return;
  // Steps of equal length could always hit the same iteration of a loop, so their lengths vary.
  const std::size_t samples = rounds_ < kFirstRounds ? kFirstSamples : kSamples;
  const std::size_t step = std::max<std::size_t>((log.size() - 1) / samples, 1);
  for (std::size_t i = 0, at = 0; at + 1 < log.size(); ++i, at = i * step + i % step) {
    ++samples_;
    Count& count = counts_[log[at]];
    ++count.seen;
    const auto target = target_of(log[at], log[at + 1]);
    if (!target) continue;
    // The majority vote of Boyer and Moore.
    if (count.majority == 0) count.target = *target;
    if (count.target == *target) {
      ++count.majority;
    } else {
      --count.majority;
    }
  }
}

void ExitProfile::begin_again(bool told_something) {
  counts_.clear();
  samples_ = 0;
  ++rounds_;
  every_ = told_something ? 1 : std::min(2 * every_, kRarest);
}

}  // namespace backtrail::tracee::cache
