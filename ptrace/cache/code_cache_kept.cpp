// Translations that were kept from earlier processes, and keeping one's own.

#include <algorithm>
#include <cstring>

#include "ptrace/cache/code_cache.hpp"

namespace backtrail::tracee::cache {
namespace {

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// What is looked up by address, of what is kept.
struct Index {
  std::vector<CodeModule> modules;
  std::vector<KeptPad> pads;
  std::vector<KeptBody> bodies;

  [[nodiscard]] bool has(TraceeAddr head) const {
    return std::any_of(modules.begin(), modules.end(), [=](const CodeModule& module) {
      return module.begin <= head && head < module.end;
    });
  }
  /// Modules that another one has taken the place of are forgotten, and how to find their code.
  void merge(std::span<const CodeModule> older);
};

void Index::merge(std::span<const CodeModule> older) {
  const std::size_t present = modules.size();
  for (const CodeModule& old : older) {
    const auto now = std::span{modules}.first(present);
    if (std::find(now.begin(), now.end(), old) != now.end()) continue;
    const bool replaced = std::any_of(now.begin(), now.end(), [&](const CodeModule& module) {
      return module.begin < old.end && old.begin < module.end;
    });
    if (!replaced) {
      modules.push_back(old);
      continue;
    }
    const auto inside = [&](TraceeAddr head) { return old.begin <= head && head < old.end; };
    std::erase_if(bodies, [&](const auto& body) { return inside(body.first); });
    std::erase_if(pads, [&](const auto& pad) { return inside(pad.first); });
  }
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
  if (!kept_ || !adopted_current_) return;
  active_.emplace_back(begin, end);
  for (const auto& [head, pad] : kept_->parts().pads) {
    if (head < begin || head >= end) continue;
    point(pad - kRel32Bytes, memory_.entry(table_index(head)));
    open_pad(head, pad);
    kept_pads_.emplace_back(head, pad);
  }
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

void CodeCache::drop_adopted() {
  complete_ = false;
  adopted_current_ = false;
  if (active_.empty()) return;
  active_.clear();
  // All of it: code that was kept and changes is rare. Threads in it get out at their next exit.
  for (const ExitPlace place : kept_->parts().places) {
    if (place.link() != 0) point(place.link(), miss());
  }
  for (const std::uint32_t link : links_to_adopted_) point(link, miss());
  links_to_adopted_.clear();
  for (const auto& [head, pad] : kept_pads_) close_pad(head, pad);
  kept_pads_.clear();
}

void CodeCache::keep(std::vector<CodeModule> modules,
                     const std::function<void(const KeptPieces&)>& use) {
  if (!complete_) return;
  const KeptView old = kept_ ? kept_->parts() : KeptView{};
  Index index{.modules = std::move(modules),
              .pads = {old.pads.begin(), old.pads.end()},
              .bodies = {old.bodies.begin(), old.bodies.end()}};
  index.merge(old.modules);
  // Some were made again.
  std::erase_if(index.pads, [&](const KeptPad& pad) { return is_closed(pad.second); });
  std::erase_if(index.bodies, [&](const KeptBody& body) {
    const HeadTable::Entry* known = heads_.find(body.first);
    return known != nullptr && known->block != HeadTable::kNone;
  });
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const CodeBlock& block = blocks_[i];
    if (!block.is_landing() || block.is_dropped() || !index.has(block.head)) continue;
    index.pads.emplace_back(block.head, block.offset + translate::kPadOffset);
  }
  for (const HeadTable::Entry& head : heads_.slots()) {
    if (head.block == HeadTable::kNone) continue;
    if (index.has(head.head)) {
      index.bodies.emplace_back(head.head, blocks_[head.block].offset);
    } else {
      // Nobody is to come there.
      drop_block(head.block);
    }
  }
  std::sort(index.bodies.begin(), index.bodies.end());
  const auto code = memory_.host_code().first(used_);
  exits_->with_added([&](auto logged, auto branches, auto exits, auto weights) {
    use({.modules = {index.modules},
         .code = {code},
         .blocks = joined(old.blocks, blocks_.pieces()),
         .rows = joined(old.rows, packed_.pieces()),
         .logged = joined(old.logged, logged),
         .branches = joined(old.branches, branches),
         .exits = joined(old.exits, exits),
         .weights = {old.weights, weights},
         .places = joined(old.places, places_.pieces()),
         .pads = {index.pads},
         .bodies = {index.bodies}});
  });
}

}  // namespace backtrail::tracee::cache
