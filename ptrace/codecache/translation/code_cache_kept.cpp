// Translations that were kept from earlier processes, and keeping one's own.

#include <algorithm>
#include <cstring>

#include "ptrace/codecache/persist/kept_index.hpp"
#include "ptrace/codecache/translation/code_cache.hpp"

namespace backtrail::tracee::cache {
namespace {

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// The old part, then the new ones.
template <typename T>
KeptPieceList<T> joined(std::span<const T> old, KeptPieceList<T> more) {
  more.insert(more.begin(), old);
  return more;
}

}  // namespace

void CodeCache::adopt(std::shared_ptr<const KeptCode> kept) {
  const KeptView& parts = kept->parts();
  // It begins with a miss routine like ours.
  if (parts.code.size() < miss_.code.size() || parts.code.size() > kTranslationBytes ||
      !std::equal(miss_.code.begin(), miss_.code.end(), parts.code.begin())) {
    return;
  }
  memory_.fill_code(parts.code);
  used_ = parts.code.size();
  kept_bytes_ = parts.code.size();
  kept_exits_ = narrow(parts.exits.size());
  kept_rows_ = narrow(parts.rows.size());
  exits_ = std::make_shared<decoder::ExitTable>(kept->exits(kept));
  kept_ = std::move(kept);
}

bool CodeCache::is_active(TraceeAddr address) const {
  return std::any_of(active_.begin(), active_.end(), [=](const translate::Branch& module) {
    return module.first <= address && address < module.second;
  });
}

void CodeCache::activate(TraceeAddr begin, TraceeAddr end) {
  if (!kept_ || !adopted_current_ || calls_renewed_) return;
  const translate::Branch module{begin, end};
  active_.push_back(module);
  if (std::erase(left_, module) != 0) link_again(module);
  make_table_fit(kept_->parts().pads.size());
  for (const auto& [head, pad] : kept_->parts().pads) {
    if (head < begin || head >= end) continue;
    revive_pad(pad);
    links_.point(pad - CodeLinks::kBytes, first_pad(head));
    open_pad(head, pad);
    kept_pads_.emplace_back(head, pad);
  }
  link_crossing(module);
}

void CodeCache::link_crossing(const translate::Branch& module) {
  const auto inside = [&](TraceeAddr at) { return module.first <= at && at < module.second; };
  for (const std::uint32_t number : kept_->parts().crossing) {
    const auto exit = *exits_->find(number);
    if (!inside(exit.to) && !inside(exit.block.head)) continue;
    if (!is_active(exit.to) || !is_active(exit.block.head)) continue;
    if (const auto body = find_body(exit.to)) link(number, memory_.code() + *body);
  }
}

void CodeCache::link_again(const translate::Branch& module) {
  const auto inside = [&](TraceeAddr at) { return module.first <= at && at < module.second; };
  for (std::uint32_t number = 0; number < kept_exits_; ++number) {
    const ExitPlace place = place_of(number);
    if (place.link() == 0) continue;
    const auto exit = *exits_->find(number);
    if (!inside(exit.to) || !inside(exit.block.head) ||
        place.kind(exit.kind) == translate::ExitKind::kStale) {
      continue;
    }
    if (const auto body = kept_->body(exit.to)) links_.point(place.link(), memory_.code() + *body);
  }
}

void CodeCache::deactivate(TraceeAddr begin, TraceeAddr end) {
  CodeRanges gone;
  std::erase_if(active_, [&](const translate::Branch& module) {
    if (module.second <= begin || end <= module.first) return false;
    gone.push_back(module);
    return true;
  });
  if (gone.empty()) return;
  ++drops_;
  left_.insert(left_.end(), gone.begin(), gone.end());
  const auto is_gone = [&](TraceeAddr head) {
    return std::any_of(gone.begin(), gone.end(), [=](const translate::Branch& module) {
      return module.first <= head && head < module.second;
    });
  };
  // All of the module: code that was kept and changes is rare. Threads in it get out at their next
  // exit.
  for (std::uint32_t exit = 0; exit < kept_exits_; ++exit) {
    const std::uint32_t link = place_of(exit).link();
    if (link != 0 && is_gone(exits_->find(exit)->to)) links_.point(link, miss());
  }
  std::erase_if(links_to_adopted_, [&](std::uint32_t link) {
    const CodeBlock* target = kept_->block_at(links_.target_of(link));
    if (target != nullptr && !is_gone(target->head)) return false;
    if (target != nullptr) links_.point(link, miss());
    return true;
  });
  std::erase_if(kept_pads_, [&](const KeptPad& pad) {
    if (!is_gone(pad.first)) return false;
    close_pad(pad.first, pad.second);
    return true;
  });
}

std::optional<std::uint64_t> CodeCache::find_body(TraceeAddr head) const {
  const HeadTable::Entry* known = heads_.find(head);
  if (known != nullptr && known->block != HeadTable::kNone) return blocks_[known->block].offset;
  if (!kept_ || !is_active(head)) return std::nullopt;
  return kept_->body(head);
}

ExitPlace CodeCache::place_of(std::uint32_t exit_number) const {
  if (exit_number < kept_exits_) return kept_->parts().places[exit_number];
  return places_[exit_number - kept_exits_];
}

void CodeCache::keep(const KeptModules& modules, Keeping when,
                     const std::function<void(const KeptPieces&)>& use) {
  if (!complete_) return;
  const KeptView old = kept_ ? kept_->parts() : KeptView{};
  KeptIndex index{modules, old, blocks_.size()};
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const CodeBlock& block = blocks_[i];
    if (calls_renewed_ && block.comes_to_call()) continue;
    if (!block.is_dropped() || block.is_retired()) index.add(block, ranges_of(block));
  }
  index.complete();
  std::span<std::uint8_t> code = memory_.host_code().first(used_);
  std::vector<std::uint8_t> copy;
  if (when == Keeping::kMeanwhile) {
    copy.assign(code.begin(), code.end());
    code = copy;
  }
  const auto crossing = link_as_kept(index, code);
  exits_->with_added([&](auto logged, auto branches, auto exits, auto weights) {
    use({.modules = {index.modules()},
         .code = {code},
         .blocks = joined(old.blocks, blocks_.pieces()),
         .rows = joined(old.rows, packed_.pieces()),
         .logged = joined(old.logged, logged),
         .branches = joined(old.branches, branches),
         .exits = joined(old.exits, exits),
         .weights = {old.weights, weights},
         .places = joined(old.places, places_.pieces()),
         .pads = {index.pads()},
         .bodies = {index.bodies()},
         .crossing = {crossing}});
  });
}

std::vector<std::uint32_t> CodeCache::link_as_kept(const KeptIndex& index,
                                                   std::span<std::uint8_t> code) const {
  std::vector<std::uint32_t> crossing;
  for (const auto& [head, pad] : index.pads()) {
    const auto there = code.subspan(pad, translate::kDeadPad.size());
    if (!std::equal(there.begin(), there.end(), translate::kDeadPad.begin())) continue;
    const auto alive = translate::pad_beginning(block_of_pad(pad).body);
    std::copy(alive.begin(), alive.end(), there.begin());
  }
  for (std::uint32_t number = 0; number < exits_->next_number(); ++number) {
    const ExitPlace place = place_of(number);
    if (place.link() == 0) continue;
    const auto exit = *exits_->find(number);
    if (place.kind(exit.kind) == translate::ExitKind::kStale) continue;
    const auto body = index.linked(exit.block.head, exit.to);
    const std::uint32_t distance =
        links_.distance_to(place.link(), body ? memory_.code() + *body : miss());
    std::memcpy(code.subspan(place.link()).data(), &distance, sizeof distance);
    if (!body && index.crosses(exit.block.head, exit.to)) crossing.push_back(number);
  }
  return crossing;
}

}  // namespace backtrail::tracee::cache
