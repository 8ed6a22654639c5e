// Translations that were kept from earlier processes, and keeping one's own.

#include <algorithm>
#include <cstring>

#include "ptrace/cache/code_cache.hpp"

namespace backtrail::tracee::cache {
namespace {

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// Lets the rel32 lead to the miss routine, which the code begins with.
void unlink(std::vector<std::uint8_t>& code, std::uint64_t link) {
  const auto distance = narrow(0 - (link + sizeof(std::uint32_t)));
  std::memcpy(&code[link], &distance, sizeof distance);
}

/// Modules that another one has taken the place of are forgotten, and how to find their code.
void merge_modules(KeptParts& parts, std::vector<CodeModule> present) {
  for (const CodeModule& old : parts.modules) {
    if (std::find(present.begin(), present.end(), old) != present.end()) continue;
    const bool replaced = std::any_of(present.begin(), present.end(), [&](const CodeModule& now) {
      return now.begin < old.end && old.begin < now.end;
    });
    if (!replaced) {
      present.push_back(old);
      continue;
    }
    const auto inside = [&](TraceeAddr head) { return old.begin <= head && head < old.end; };
    std::erase_if(parts.bodies, [&](const auto& body) { return inside(body.first); });
    std::erase_if(parts.pads, [&](const KeptPad& pad) { return inside(pad.head); });
  }
  parts.modules = std::move(present);
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
  exits_ = std::make_shared<decoder::ExitTable>(kept_exits_, [kept] { return kept->exits(); });
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
  const auto& pads = kept_->parts().pads;
  for (std::uint32_t i = 0; i < pads.size(); ++i) {
    const KeptPad& pad = pads[i];
    if (pad.head < begin || pad.head >= end) continue;
    const std::size_t index = pad.head.value() % translate::kTableEntries;
    // Whatever is there already is asked when the pad's target is another.
    point(pad.conflict_link, memory_.entry(index));
    memory_.store_entry(index, memory_.code() + pad.address);
    kept_pads_.emplace_back(pad.head, i);
  }
  std::sort(kept_pads_.begin(), kept_pads_.end());
}

CodeCache::Pad* CodeCache::find_pad(TraceeAddr head) {
  if (const auto known = pads_.find(head); known != pads_.end()) return &known->second;
  const auto found = std::lower_bound(kept_pads_.begin(), kept_pads_.end(), std::pair{head, 0U});
  if (found == kept_pads_.end() || found->first != head) return nullptr;
  const KeptPad& kept = kept_->parts().pads[found->second];
  const TraceeAddr body = memory_.code() + kept_->body(head).value_or(0);
  Pad pad{.body_link = kept.body_link, .body = body};
  return &pads_.emplace(head, pad).first->second;
}

std::optional<std::uint64_t> CodeCache::find_body(TraceeAddr head) const {
  if (const auto known = by_head_.find(head); known != by_head_.end()) return known->second->offset;
  if (!kept_ || !is_active(head)) return std::nullopt;
  return kept_->body(head);
}

std::uint64_t CodeCache::link_of(std::uint32_t exit_number) const {
  if (exit_number < kept_exits_) return kept_->parts().exits[exit_number].link;
  exit_number -= kept_exits_;
  return exit_number < exit_places_.size() ? exit_places_[exit_number].link : 0;
}

std::optional<CodePlace> CodeCache::locate_adopted(std::uint64_t offset) const {
  const KeptBlock* block = kept_->block_at(offset);
  if (block == nullptr) return std::nullopt;
  const auto row = kept_->row(*block, offset - block->offset);
  if (!row) return std::nullopt;
  located_row_ = *row;
  adopted_block_ = kept_->logged(*block);
  const bool pad = block->is_pad != 0;
  return CodePlace{pad ? CodePlace::Kind::kPad : CodePlace::Kind::kBlock, &located_row_,
                   pad ? nullptr : &adopted_block_, false};
}

void CodeCache::drop_adopted() {
  complete_ = false;
  adopted_current_ = false;
  if (active_.empty()) return;
  active_.clear();
  // All of it: code that was kept and changes is rare. Threads in it get out at their next exit.
  for (const KeptExit& exit : kept_->parts().exits) {
    if (exit.link != 0) point(exit.link, miss());
  }
  for (const std::uint64_t link : links_to_adopted_) point(link, miss());
  links_to_adopted_.clear();
  for (const auto& [head, index] : kept_pads_) (void)find_pad(head);
  kept_pads_.clear();
  for (auto& [head, pad] : pads_) {
    if (pad.body - memory_.code() >= kept_bytes_) continue;
    point(pad.body_link, miss());
    pad.body = miss();
  }
}

std::shared_ptr<const KeptCode> CodeCache::keep(std::vector<CodeModule> modules) const {
  if (!complete_) return nullptr;
  KeptParts parts;
  if (kept_) parts = kept_->copy();
  merge_modules(parts, std::move(modules));
  parts.code.assign(memory_.host_code().begin(),
                    memory_.host_code().begin() + static_cast<std::ptrdiff_t>(used_));
  const auto is_kept = [&](TraceeAddr head) {
    return std::any_of(parts.modules.begin(), parts.modules.end(), [=](const CodeModule& module) {
      return module.begin <= head && head < module.end;
    });
  };
  for (const auto& block : blocks_) {
    if (block->is_pad || is_kept(block->head)) continue;
    for (const std::uint32_t link : block->incoming) unlink(parts.code, link);
  }
  parts.blocks.reserve(parts.blocks.size() + blocks_.size());
  parts.exits.reserve(parts.exits.size() + exit_places_.size());
  parts.bodies.reserve(parts.bodies.size() + by_head_.size());
  const std::size_t old_rows = parts.rows.size();
  parts.rows.insert(parts.rows.end(), rows_.begin(), rows_.end());
  std::unordered_map<const decoder::LoggedBlock*, std::uint32_t> index;
  for (const auto& block : blocks_) {
    KeptBlock made{.head = block->head,
                   .offset = block->offset,
                   .size = block->size,
                   .first_row = narrow(old_rows + block->first_row),
                   .row_bytes = block->row_bytes,
                   .first_branch = narrow(parts.branches.size()),
                   .is_pad = block->is_pad ? 1U : 0U};
    if (block->logged != nullptr) {
      const auto taken = block->logged->branches;
      made.branches = narrow(taken.size());
      parts.branches.insert(parts.branches.end(), taken.begin(), taken.end());
      index[block->logged] = narrow(parts.blocks.size());
    }
    parts.blocks.push_back(made);
  }
  for (std::size_t i = 0; i < exit_places_.size(); ++i) {
    const auto number = kept_exits_ + narrow(i);
    const decoder::LoggedExit& logged = *exits_->find(number);
    auto kept = KeptExit::of(*exit(number), logged.block->head);
    if (!kept) return nullptr;
    kept->link = exit_places_[i].link;
    kept->block = index.at(logged.block);
    parts.exits.push_back(*kept);
  }
  for (const auto& block : blocks_) {
    if (!block->is_pad || !is_kept(block->head)) continue;
    const Pad& pad = pads_.at(block->head);
    parts.pads.push_back(
        {block->head, narrow(pad.address), narrow(pad.body_link), narrow(pad.conflict_link)});
  }
  for (const auto& [head, block] : by_head_) {
    if (is_kept(head)) parts.bodies.emplace_back(head, block->offset);
  }
  std::sort(parts.bodies.begin(), parts.bodies.end());
  return KeptCode::make(std::move(parts));
}

}  // namespace backtrail::tracee::cache
