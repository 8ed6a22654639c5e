// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/loaded_links.hpp"

#include <algorithm>

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;

/// Number of times that processes go through all links before one sorts them.
constexpr std::uint32_t kPassesBeforeSorting = 3;

}  // namespace

LoadedLinks::LoadedLinks(CodeLinks& links, const Superblocks& superblocks, TraceeAddr miss)
    : links_{links}, superblocks_{superblocks}, miss_{miss} {}

void LoadedLinks::load(std::shared_ptr<const PersistentCode> loaded,
                       std::shared_ptr<const decoder::ExitTable> exits) {
  loaded_ = std::move(loaded);
  exits_ = std::move(exits);
}

void LoadedLinks::clear() {
  from_loaded_.clear();
  to_loaded_.clear();
  redirected_.clear();
}

void LoadedLinks::lead(std::uint32_t link, std::uint64_t target) {
  links_.point(link, links_.address_of(target));
  if (superblocks_.is_loaded(target)) {
    to_loaded_.push_back(link);
  } else if (superblocks_.is_loaded(link)) {
    if (const auto index = superblocks_.index_at(target)) from_loaded_[*index].push_back(link);
  }
}

std::vector<std::uint32_t> LoadedLinks::leading_to(std::uint32_t index) const {
  const auto found = from_loaded_.find(index);
  return found != from_loaded_.end() ? found->second : std::vector<std::uint32_t>{};
}

void LoadedLinks::release(std::uint32_t index) {
  const auto found = from_loaded_.find(index);
  if (found == from_loaded_.end()) return;
  for (const std::uint32_t link : found->second) links_.point(link, miss_);
  from_loaded_.erase(found);
}

void LoadedLinks::move(std::uint32_t from, std::uint32_t to) {
  const auto found = from_loaded_.find(from);
  if (found == from_loaded_.end()) return;
  std::vector<std::uint32_t> moved = std::move(found->second);
  from_loaded_.erase(found);
  const TraceeAddr target = links_.address_of(superblocks_[to].offset);
  for (const std::uint32_t link : moved) links_.point(link, target);
  from_loaded_[to] = std::move(moved);
}

template <typename Look>
void LoadedLinks::for_each_loaded(Look look) const {
  const auto& places = loaded_->parts().places;
  for (std::uint32_t exit = 0; exit < places.size(); ++exit) {
    const ExitPlace place = places[exit];
    const bool stale =
        place.kind(decoder::LoggedExitKind::kContinue) == translate::ExitKind::kStale;
    if (place.link() != 0 && !stale) look(exits_->target(exit), place.link());
  }
}

void LoadedLinks::redirect_all() {
  if (redirected_.empty()) return;
  const auto lead_to = [this](std::uint32_t link, std::uint32_t index) {
    links_.point(link, links_.address_of(superblocks_[index].offset));
    from_loaded_[index].push_back(link);
  };
  LinkIndex& all = loaded_->link_index();
  auto& sorted = all.sorted;
  if (sorted.empty() && ++all.passes <= kPassesBeforeSorting) {
    for_each_loaded([&](TraceeAddr to, std::uint32_t link) {
      if (const auto found = redirected_.find(to); found != redirected_.end()) {
        lead_to(link, found->second);
      }
    });
  } else {
    if (sorted.empty()) {
      for_each_loaded([&](TraceeAddr to, std::uint32_t link) { sorted.emplace_back(to, link); });
      std::sort(sorted.begin(), sorted.end());
    }
    for (const auto& [start, index] : redirected_) {
      for (auto at =
               std::lower_bound(sorted.begin(), sorted.end(), std::pair{start, std::uint32_t{0}});
           at != sorted.end() && at->first == start; ++at) {
        lead_to(at->second, index);
      }
    }
  }
  redirected_.clear();
}

void LoadedLinks::restore(const translate::Branch& module) {
  const auto& places = loaded_->parts().places;
  for (std::uint32_t exit_id = 0; exit_id < places.size(); ++exit_id) {
    const ExitPlace place = places[exit_id];
    if (place.link() == 0) continue;
    const auto exit = *exits_->find(exit_id);
    if (!is_in(module, exit.to) || !is_in(module, exit.block.start) ||
        place.kind(exit.kind) == translate::ExitKind::kStale) {
      continue;
    }
    if (const auto translation = loaded_->translation(exit.to)) {
      links_.point(place.link(), links_.address_of(*translation));
    }
  }
}

void LoadedLinks::release_modules(const CodeRanges& modules) {
  const auto is_gone = [&](TraceeAddr start) {
    return std::any_of(modules.begin(), modules.end(),
                       [=](const translate::Branch& module) { return is_in(module, start); });
  };
  const auto& places = loaded_->parts().places;
  for (std::uint32_t exit_id = 0; exit_id < places.size(); ++exit_id) {
    const std::uint32_t link = places[exit_id].link();
    if (link != 0 && is_gone(exits_->target(exit_id))) links_.point(link, miss_);
  }
  std::erase_if(to_loaded_, [&](std::uint32_t link) {
    const CodeBlock* target = loaded_->block_at(links_.target_of(link));
    if (target != nullptr && !is_gone(target->start)) return false;
    if (target != nullptr) links_.point(link, miss_);
    return true;
  });
}

}  // namespace backtrail::tracee::cache
