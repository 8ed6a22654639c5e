// Superblocks made again along the way that their code goes.

#include <algorithm>
#include <array>
#include <utility>

#include "ptrace/codecache/translation/code_cache.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Samples of a superblock that tell which way it goes.
constexpr std::uint32_t kEnough = 12;
/// Of 8, a branch that is followed goes there at least so often.
constexpr std::uint32_t kMostOfEight = 5;
/// A branch that changes its mind is followed so many times.
constexpr std::uint32_t kMostChanges = 4;
constexpr std::size_t kMostAtOnce = 256;
/// Among all links of adopted code.
constexpr std::uint32_t kLooksBeforeSorting = 3;
/// Programs that make code for ever have ever new branches.
constexpr std::size_t kMostLikely = 65536;

}  // namespace

/// An exit of a superblock, as often as it was seen.
struct CodeCache::SeenExit {
  std::uint32_t number = 0;
  decoder::LoggedExit what;
  ExitProfile::Count count;
};

std::optional<TraceeAddr> CodeCache::likely_target(TraceeAddr branch) const {
  const auto known = likely_.find(branch);
  if (known == likely_.end() || !known->second.target) return std::nullopt;
  return known->second.target;
}

bool CodeCache::set_likely(TraceeAddr branch, std::optional<TraceeAddr> target) {
  const auto known = likely_.find(branch);
  if (known == likely_.end() && !target) return false;
  if (likely_.size() == kMostLikely) likely_.clear();
  LikelyTarget& likely = likely_[branch];
  if (likely.target == target || likely.changes == kMostChanges) return false;
  likely.target = target;
  ++likely.changes;
  return true;
}

bool CodeCache::learn_from(const SeenExit& exit) {
  const decoder::LoggedExit& what = exit.what;
  switch (what.kind) {
    case decoder::LoggedExitKind::kIndirect: {
      // Seven of ten, when that many more than all others are four.
      const bool mostly_there = 10 * exit.count.majority >= 4 * exit.count.seen;
      return set_likely(what.from, mostly_there ? std::optional{exit.count.target} : std::nullopt);
    }
    case decoder::LoggedExitKind::kDirect:
      return is_conditional(what.from) && set_likely(what.from, what.to);
    case decoder::LoggedExitKind::kContinue: {
      // The branch that the superblock follows next is the one that was not taken.
      const auto all = exits_->block(what.block_number);
      const std::size_t passed = what.block.branches.size();
      return passed < all.branches.size() && set_likely(all.branch(passed).first, std::nullopt);
    }
  }
  return false;
}

bool CodeCache::is_conditional(TraceeAddr branch) {
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t count = source_.read(branch, bytes);
  return decoded_.decode(branch, std::span{bytes}.first(count)).kind ==
         translate::InsnClass::kConditionalJump;
}

bool CodeCache::goes_another_way(std::vector<SeenExit>& exits) {
  std::uint32_t reached = 0;
  for (const SeenExit& exit : exits) reached += exit.count.seen;
  std::sort(exits.begin(), exits.end(), [](const SeenExit& a, const SeenExit& b) {
    // The last one of a superblock was made first.
    return std::pair{a.what.executed, b.number} < std::pair{b.what.executed, a.number};
  });
  for (const SeenExit& exit : exits) {
    if (reached < kEnough) return false;
    if (8 * exit.count.seen >= kMostOfEight * reached) return learn_from(exit);
    reached -= exit.count.seen;
  }
  return false;
}

bool CodeCache::improve(const ExitProfile& profile) {
  std::unordered_map<std::uint32_t, std::vector<SeenExit>> by_block;
  for (const auto& [number, count] : profile.counts()) {
    if (const auto what = exits_->find(number)) {
      by_block[what->block_number].push_back({number, *what, count});
    }
  }
  std::size_t made = 0;
  for (auto& [logged, exits] : by_block) {
    if (made == kMostAtOnce) break;
    if (goes_another_way(exits) && make_again(logged)) ++made;
  }
  redirect_adopted();
  improved_ += made;
  return made != 0;
}

std::optional<CodeBlock> CodeCache::logged_block(std::uint32_t logged) const {
  if (logged >= exits_->base().blocks.size()) {
    const auto index = block_of(logged);
    return index ? std::optional{blocks_[*index]} : std::nullopt;
  }
  if (!adopted_current_) return std::nullopt;
  const auto& blocks = kept_->parts().blocks;
  const auto found = std::lower_bound(
      blocks.begin(), blocks.end(), logged,
      [](const CodeBlock& block, std::uint32_t number) { return block.logged < number; });
  return found != blocks.end() && found->logged == logged ? std::optional{*found} : std::nullopt;
}

bool CodeCache::is_in_use(const CodeBlock& block) const {
  if (!block.is_landing()) return find_body(block.head) == block.offset;
  const CodeBlock* landing = find_landing(block.head);
  return landing != nullptr && landing->offset == block.offset;
}

bool CodeCache::make_again(std::uint32_t logged) {
  const auto old = logged_block(logged);
  if (!old || !is_in_use(*old) || used_ + 2UL * kLargestBlock > limit_ ||
      facts_.may_change(old->head) || facts_.left_to_cpu(old->head) != translate::Special::kNone) {
    return false;
  }
  const bool lands = old->is_landing();
  if (lands) close_pad(old->head, old->offset + translate::kPadOffset);
  Successors successors;
  const auto body = make(old->head, lands ? Use::kLanding : Use::kDirect, successors);
  const auto* address = std::get_if<TraceeAddr>(&body);
  const auto index = block_of(logged);
  if (index && (lands || address != nullptr)) blocks_[*index].set(CodeBlock::kDropped);
  if (address != nullptr && !lands) redirect(old->head, index, *address);
  return address != nullptr;
}

bool CodeCache::renew_calls() {
  calls_renewed_ = true;
  if (adopted_current_ && kept_) {
    for (const CodeBlock& block : kept_->parts().blocks) {
      if (block.comes_to_call() && is_in_use(block) && !make_again(block.logged)) return false;
    }
  }
  redirect_adopted();
  const std::size_t count = blocks_.size();
  for (std::uint32_t index = 0; index < count; ++index) {
    const CodeBlock block = blocks_[index];
    if (!block.comes_to_call() || block.is_dropped() || !is_in_use(block)) continue;
    if (!make_again(block.logged)) drop_block(index);
  }
  return true;
}

void CodeCache::redirect(TraceeAddr head, std::optional<std::uint32_t> old, TraceeAddr body) {
  const std::uint32_t now = heads_.at(head).block;
  if (!old) {
    redirected_[head] = now;
    return;
  }
  const auto found = from_adopted_.find(*old);
  if (found == from_adopted_.end()) return;
  for (const std::uint32_t link : found->second) links_.point(link, body);
  from_adopted_[now] = std::move(found->second);
  from_adopted_.erase(*old);
}

template <typename Look>
void CodeCache::for_each_adopted_link(Look look) const {
  for (std::uint32_t exit = 0; exit < kept_exits_; ++exit) {
    const ExitPlace place = kept_->parts().places[exit];
    const bool stale =
        place.kind(decoder::LoggedExitKind::kContinue) == translate::ExitKind::kStale;
    if (place.link() != 0 && !stale) look(exits_->target(exit), place.link());
  }
}

void CodeCache::redirect_adopted() {
  if (redirected_.empty()) return;
  const auto lead = [this](std::uint32_t link, std::uint32_t block) {
    links_.point(link, memory_.code() + blocks_[block].offset);
    from_adopted_[block].push_back(link);
  };
  // Most processes want it once or twice, and all of the links take longer to sort than to see.
  if (++adopted_looks_ <= kLooksBeforeSorting) {
    for_each_adopted_link([&](TraceeAddr to, std::uint32_t link) {
      if (const auto found = redirected_.find(to); found != redirected_.end()) {
        lead(link, found->second);
      }
    });
  } else {
    if (adopted_links_.empty()) {
      for_each_adopted_link(
          [this](TraceeAddr to, std::uint32_t link) { adopted_links_.emplace_back(to, link); });
      std::sort(adopted_links_.begin(), adopted_links_.end());
    }
    for (const auto& [head, block] : redirected_) {
      for (auto at = std::lower_bound(adopted_links_.begin(), adopted_links_.end(),
                                      std::pair{head, std::uint32_t{0}});
           at != adopted_links_.end() && at->first == head; ++at) {
        lead(at->second, block);
      }
    }
  }
  redirected_.clear();
}

}  // namespace backtrail::tracee::cache
