// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/stack_joiner.hpp"

#include <algorithm>

namespace backtrail::decoder::perf {
namespace {

constexpr unsigned kWrongPath = 1;

bool is_user(std::uint64_t address) {
  return address != 0 && (address >> 63U) == 0;
}

}  // namespace

/// Returns how many of `now`'s oldest pairs are the newest pairs of the previous stack: the longest
/// match.
std::size_t StackJoiner::common(std::span<const Pair> now) const {
  for (std::size_t count = std::min(now.size(), last_.size()); count != 0; --count) {
    if (std::equal(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(count),
                   last_.end() - static_cast<std::ptrdiff_t>(count)))
      return count;
  }
  return 0;
}

void StackJoiner::take(std::span<const std::uint8_t> branches) {
  std::vector<Pair> now;
  for (std::size_t i = branches.size() / kBtsRecordBytes; i-- != 0;) {
    const BranchEntry entry = read_branch_entry(branches, i);
    if (entry.speculation() == kWrongPath || !is_user(entry.from) || !is_user(entry.to)) continue;
    now.push_back({entry.from, entry.to});
  }
  if (now.empty()) return;
  const std::size_t known = common(now);
  if (known == 0 && (!last_.empty() || broken_)) out_.lost({});
  broken_ = false;
  for (std::size_t i = known; i < now.size(); ++i) out_.pair(now[i].from, now[i].to);
  last_ = std::move(now);
}

}  // namespace backtrail::decoder::perf
