// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/code_cache.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "ptrace/codecache/translation/saved_code.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kAlignment = 16;
/// Most superblocks to be made after one that was wanted, where the thread asks for the next one.
constexpr std::size_t kBatchBlocks = 3;
constexpr std::size_t kPlainBatchBlocks = 15;
/// As above, where it stops at the next miss: two context switches cost as much as translating many
/// superblocks.
constexpr std::size_t kStopBatchBlocks = 15;
constexpr std::size_t kPlainStopBatchBlocks = 40;
/// Most superblocks that one call of retranslate_by_profile() replaces.
constexpr std::size_t kMostAtOnce = 256;
/// Number of samples from which on a plain superblock is worth a longer one.
constexpr std::uint32_t kHot = 12;

/// Returns the code offset of the first superblock.
std::uint64_t first_offset(const translate::DispatchStub& miss) {
  return (miss.code.size() + kAlignment - 1) / kAlignment * kAlignment;
}

/// Returns the code offset of a superblock's indirect-branch entry.
std::uint64_t entry_of(const CodeBlock& block) {
  return block.offset + translate::kIbEntryOffset;
}

}  // namespace

CodeCache::CodeCache(CodeMemory& memory, translate::CodeSource source, CodeFacts facts,
                     const translate::InlineSystemCalls& inline_calls)
    : memory_{memory},
      miss_{translate::make_dispatch_stub(memory.code())},
      exits_{std::make_shared<decoder::ExitTable>()},
      links_{memory.host_code(), memory.code()},
      exit_links_{links_},
      indirect_{memory.entries(), links_, superblocks_, memory.code()},
      loaded_links_{links_, superblocks_, miss()},
      loaded_{indirect_, loaded_links_},
      maker_{memory,
             completed(std::move(source)),
             std::move(facts),
             inline_calls,
             {.dispatch = miss(), .after_handler = memory.code() + miss_.returned_at}} {
  std::copy(miss_.code.begin(), miss_.code.end(), memory_.host_code().begin());
  maker_.go_on_at(first_offset(miss_));
  memory_.fill_table(memory_.code());
}

translate::CodeSource CodeCache::completed(translate::CodeSource source) {
  source.likely_target = [this](TraceeAddr branch) { return likely_.find(branch); };
  source.joined_at = [this](TraceeAddr at) { return find_translation(at).has_value(); };
  return source;
}

// --- finding and making ---------------------------------------------------------------------

std::optional<std::uint64_t> CodeCache::find_translation(TraceeAddr start) const {
  if (!starts_.may_begin_at(start)) return std::nullopt;
  if (const auto index = exit_links_.superblock(start)) return superblocks_[*index].offset;
  return loaded_.translation(start);
}

void CodeCache::note_start(TraceeAddr start) {
  if (!starts_.in_use() && loaded_.is_usable()) {
    for (const auto& [loaded, offset] : loaded_.code()->parts().translations) starts_.add(loaded);
  }
  starts_.add(start);
}

std::variant<TraceeAddr, translate::UntranslatableReason> CodeCache::translation(TraceeAddr start) {
  if (const auto known = find_translation(start)) return links_.address_of(*known);
  return make_some(start, Use::kDirect);
}

std::variant<TraceeAddr, translate::UntranslatableReason> CodeCache::ib_entry(TraceeAddr start) {
  if (const CodeBlock* known = indirect_.find(start)) {
    return links_.address_of(std::uint64_t{known->offset} + known->after_entry);
  }
  return make_some(start, Use::kIndirect);
}

std::variant<TraceeAddr, translate::UntranslatableReason> CodeCache::make_some(TraceeAddr start,
                                                                               Use use) {
  const CodeFacts& facts = maker_.facts();
  if (const auto why = facts.left_to_cpu(start); why != translate::UntranslatableReason::kNone)
    return why;
  likely_next_.next.clear();
  likely_next_.made = 0;
  likely_next_.most = {kBatchBlocks, kPlainBatchBlocks};
  likely_next_.after_plain = maker_.makes_plain(start);
  const auto made = make(start, use);
  likely_next_.next.add(found_);
  return made;
}

void CodeCache::make_all_next() {
  likely_next_.most = {kStopBatchBlocks, kPlainStopBatchBlocks};
  while (make_next()) {
  }
}

bool CodeCache::make_next() {
  Ahead& ahead = likely_next_;
  const std::size_t most = ahead.after_plain ? ahead.most.plain : ahead.most.usual;
  while (ahead.made < most) {
    const auto likely = ahead.next.take();
    if (!likely) break;
    const bool is_pointer = likely->way == LikelyCode::Way::kPointer;
    const auto start = is_pointer ? pointer_at(likely->at) : std::optional{likely->at};
    if (!start || (ahead.made >= ahead.most.usual && !maker_.makes_plain(*start))) continue;
    const Use use = likely->way == LikelyCode::Way::kDirect ? Use::kDirect : Use::kIndirect;
    if (!make_if_new(*start, use, likely->chance)) continue;
    ahead.next.add(found_);
    ++ahead.made;
    return true;
  }
  ahead.next.clear();
  return false;
}

std::optional<TraceeAddr> CodeCache::pointer_at(TraceeAddr at) const {
  const auto& read = ahead_ != nullptr ? ahead_->pointer_at : maker_.facts().pointer_at;
  return read ? read(at) : std::nullopt;
}

bool CodeCache::make_if_new(TraceeAddr start, Use use, Chance chance) {
  const bool known = use == Use::kIndirect ? indirect_.find(start) != nullptr
                                           : find_translation(start).has_value();
  if (known || maker_.facts().left_to_cpu(start) != translate::UntranslatableReason::kNone) {
    return false;
  }
  return std::holds_alternative<TraceeAddr>(make(start, use, chance));
}

std::size_t CodeCache::translate_ahead(std::span<const TraceeAddr> starts, const AheadFacts& facts,
                                       std::uint64_t most_bytes) {
  const std::size_t before = superblocks_.size();
  ahead_ = &facts;
  maker_.set_all_plain(true);
  std::vector<TraceeAddr> direct;
  std::vector<TraceeAddr> indirect;
  const auto make_last = [&](std::vector<TraceeAddr>& list, Use use) {
    const TraceeAddr next = list.back();
    list.pop_back();
    if (!make_if_new(next, use)) return;
    for (const LikelyCode& found : found_) {
      (found.way == LikelyCode::Way::kDirect ? direct : indirect).push_back(found.at);
    }
  };
  for (const TraceeAddr start : starts) {
    indirect.push_back(start);
    // The code of one function after the other, so that what runs together lies together.
    while (maker_.bytes_used() < most_bytes && maker_.has_room_for(1)) {
      if (!direct.empty()) {
        make_last(direct, Use::kDirect);
      } else if (!indirect.empty()) {
        make_last(indirect, Use::kIndirect);
      } else {
        break;
      }
    }
  }
  ahead_ = nullptr;
  maker_.set_all_plain(false);
  return superblocks_.size() - before;
}

std::variant<TraceeAddr, translate::UntranslatableReason> CodeCache::make(TraceeAddr start, Use use,
                                                                          Chance chance) {
  found_.clear();
  const bool lands = use == Use::kIndirect;
  auto translated = maker_.make(start, exits_->next_exit_id(),
                                lands ? std::optional{indirect_.first(start)} : std::nullopt);
  if (const auto* reason = std::get_if<translate::UntranslatableReason>(&translated))
    return *reason;
  auto& made = std::get<translate::Superblock>(translated);
  const std::uint64_t offset = links_.offset_of(made.address);
  const std::uint32_t logged = exits_->add_block(start, made.branches);
  for (const translate::Exit& exit : made.exits) {
    exits_->add_exit(
        {logged, exit.from, exit.to, exit.passed, logged_kind(exit.kind), exit.executed});
    exit_links_.add(exit, offset);
  }
  if (maker_.records_values()) values_.add(logged, made, *exits_);
  if (!made.native.empty()) {
    exits_->code().add(logged, made.branches, made.ranges, made.native);
  }
  CodeBlock block{.start = start,
                  .offset = static_cast<std::uint32_t>(offset),
                  .logged = logged,
                  .size = static_cast<std::uint16_t>(made.code.size()),
                  .after_entry = static_cast<std::uint8_t>(made.after_entry),
                  .side_exits_at = static_cast<std::uint16_t>(made.side_exits_at)};
  if (lands) block.set(CodeBlock::kIbEntry);
  if (made.calls) block.set(CodeBlock::kCalls);
  if (maker_.made_plain()) block.set(CodeBlock::kPlain);
  if (maker_.facts().made_here(start)) block.set(CodeBlock::kMadeHere);
  const std::uint32_t index = superblocks_.add(block, made.pc_map, made.ranges);
  connect(made, index, chance);
  if (lands) indirect_.open(start, entry_of(block));
  const TraceeAddr translation = made.address + made.after_entry;
  maker_.recycle(std::move(made));
  return translation;
}

void CodeCache::connect(const translate::Superblock& made, std::uint32_t index, Chance chance) {
  if (!superblocks_[index].has_ib_entry()) {
    note_start(made.start);
    exit_links_.set_superblock(made.start, index, made.address);
  }
  for (std::size_t i = 0; i < made.exits.size(); ++i) {
    const translate::Exit& exit = made.exits[i];
    if (exit.link_offset == 0 || exit.kind == translate::ExitKind::kStale) continue;
    exit_links_.list(exit.id, exit.to);
    if (const auto known = find_translation(exit.to)) {
      link(exit.id, links_.address_of(*known));
    } else {
      found_.push_back(likely_after(exit, i, chance));
    }
  }
  add_indirect(made, chance);
}

void CodeCache::add_indirect(const translate::Superblock& made, Chance chance) {
  const auto add = [this](TraceeAddr at, LikelyCode::Way way, Chance likely) {
    found_.push_back({.at = at, .way = way, .chance = likely});
  };
  for (const TraceeAddr at : made.returns) {
    add(at, LikelyCode::Way::kIndirect, after_return(chance));
  }
  if (!maker_.made_plain()) return;
  if (ahead_ == nullptr) {
    for (const TraceeAddr at : made.pointers) {
      add(at, LikelyCode::Way::kPointer, after_pointer(chance));
    }
    return;
  }
  for (const TraceeAddr at : made.pointers) {
    if (const auto target = pointer_at(at)) add(*target, LikelyCode::Way::kIndirect, kCertain);
  }
  for (const TraceeAddr named : maker_.addresses_in(made.ranges)) {
    if (ahead_->is_function(named)) add(named, LikelyCode::Way::kIndirect, kCertain);
  }
}

void CodeCache::link(std::uint32_t exit_id, TraceeAddr translation) {
  const std::uint32_t from = exit_links_.place(exit_id).link();
  if (from != 0) loaded_links_.lead(from, links_.offset_of(translation));
}

std::optional<translate::Exit> CodeCache::exit(std::uint32_t exit_id) const {
  const auto logged = exits_->find(exit_id);
  if (!logged) return std::nullopt;
  const ExitPlace place = exit_links_.place(exit_id);
  return translate::Exit{.id = exit_id,
                         .kind = place.kind(logged->kind),
                         .reason = place.reason(),
                         .passed = static_cast<std::uint16_t>(logged->block.branches.size()),
                         .executed = logged->executed,
                         .from = logged->from,
                         .to = logged->to};
}

std::optional<CodePlace> CodeCache::locate(TraceeAddr address) const {
  if (!memory_.has_code(address)) return std::nullopt;
  const std::uint64_t offset = links_.offset_of(address);
  if (offset < miss_.code.size()) {
    if (is_after_handler(address)) return CodePlace{.kind = CodePlace::Kind::kReturned};
    return CodePlace{.kind = CodePlace::Kind::kMiss,
                     .map_entry = miss_.entry_at(static_cast<std::uint32_t>(offset)),
                     .registers_saved = offset >= miss_.saved_at};
  }
  const CodeBlock* block = superblocks_.at(offset);
  if (block == nullptr) return std::nullopt;
  const auto map_entry = superblocks_.map_entry(*block, offset - block->offset);
  if (!map_entry) return std::nullopt;
  const auto within = static_cast<std::uint32_t>(offset - block->offset);
  return CodePlace{.map_entry = *map_entry,
                   .logged = exits_->block(block->logged),
                   .number = block->logged,
                   .values = values_.count_at(*block, within, *map_entry, *exits_)};
}

// --- dropping -------------------------------------------------------------------------------

void CodeCache::drop_block(std::uint32_t index) {
  const CodeBlock& block = superblocks_[index];
  if (block.is_dropped()) return;
  superblocks_.set(index, CodeBlock::kDropped);
  ++drops_;
  if (block.has_ib_entry()) return indirect_.close(block.start, entry_of(block));
  // Exits that led here must miss before they are linked again: there may be a breakpoint now.
  exit_links_.remove_superblock(block.start, miss());
  loaded_links_.release(index);
}

void CodeCache::drop(TraceeAddr begin, TraceeAddr end) {
  if (loaded_.deactivate(begin, end)) ++drops_;
  for (const std::uint32_t index : superblocks_.made_of(begin, end)) drop_block(index);
}

void CodeCache::unload(TraceeAddr begin, TraceeAddr end) {
  if (loaded_.deactivate(begin, end)) ++drops_;
  for (const std::uint32_t index : superblocks_.made_of(begin, end)) {
    if (superblocks_[index].is_dropped()) continue;
    drop_block(index);
    const CodeRanges ranges = superblocks_.ranges_of(superblocks_[index]);
    const bool alone = std::all_of(ranges.begin(), ranges.end(), [=](const auto& range) {
      return begin <= range.first && range.second <= end;
    });
    if (alone) superblocks_.set(index, CodeBlock::kUnloaded);
  }
}

void CodeCache::forget_unloaded(TraceeAddr begin, TraceeAddr end) {
  for (const std::uint32_t index : superblocks_.made_of(begin, end)) {
    superblocks_.reset(index, CodeBlock::kUnloaded);
  }
}

void CodeCache::split_at(TraceeAddr address) {
  complete_ = false;
  maker_.split_at(address);
  drop(address, address + 1);
}

void CodeCache::clear() {
  complete_ = false;
  likely_next_ = {};
  loaded_.clear();
  loaded_links_.clear();
  starts_.clear();
  superblocks_.clear();
  exit_links_.clear();
  indirect_.clear();
  maker_.go_on_at(first_offset(miss_));
  ++cleared_;
}

// --- retranslating --------------------------------------------------------------------------

std::variant<TraceeAddr, translate::UntranslatableReason> CodeCache::renew(std::uint32_t exit_id) {
  const translate::Exit stale = *exit(exit_id);
  std::vector<std::uint32_t> from_loaded;
  const auto old = exit_links_.is_loaded(exit_id)
                       ? std::nullopt
                       : superblocks_.index_at(exit_links_.place(exit_id).link());
  if (old && !superblocks_[*old].is_dropped()) {
    from_loaded = loaded_links_.leading_to(*old);
    drop_block(*old);
    superblocks_.forget_ranges(*old);
  }
  ++renewed_;
  // A thread that left a superblock for indirect branches by its stale exit has rcx in the slot.
  if (old && superblocks_[*old].has_ib_entry()) return ib_entry(stale.to);
  const auto made = translation(stale.to);
  const auto* address = std::get_if<TraceeAddr>(&made);
  if (address == nullptr || !exit_links_.superblock(stale.to)) return made;
  // Exits of this process have been linked by make() already.
  for (const std::uint32_t link : from_loaded) {
    loaded_links_.lead(link, links_.offset_of(*address));
  }
  return made;
}

bool CodeCache::is_in_use(const CodeBlock& block) const {
  if (!block.has_ib_entry()) return find_translation(block.start) == block.offset;
  const CodeBlock* ib_entry = indirect_.find(block.start);
  return ib_entry != nullptr && ib_entry->offset == block.offset;
}

bool CodeCache::retranslate(std::uint32_t logged) {
  const CodeBlock* found = superblocks_.with_id(logged);
  if (found == nullptr || !is_in_use(*found)) return false;
  const CodeBlock old = *found;
  const CodeFacts& facts = maker_.facts();
  if (!maker_.has_room_for(2) || facts.may_change(old.start) ||
      facts.left_to_cpu(old.start) != translate::UntranslatableReason::kNone) {
    return false;
  }
  const bool lands = old.has_ib_entry();
  if (lands) indirect_.close(old.start, entry_of(old));
  const auto made = make(old.start, lands ? Use::kIndirect : Use::kDirect);
  const bool done = std::holds_alternative<TraceeAddr>(made);
  const auto index = superblocks_.index_of(logged);
  if (index && (lands || done)) superblocks_.set(*index, CodeBlock::kDropped);
  if (done && !lands) {
    const std::uint32_t now = *exit_links_.superblock(old.start);
    if (index) {
      loaded_links_.move(*index, now);
    } else {
      loaded_links_.redirect(old.start, now);
    }
  }
  return done;
}

bool CodeCache::is_hot_and_plain(std::uint32_t logged, const std::vector<SeenExit>& seen) const {
  const CodeBlock* block = superblocks_.with_id(logged);
  if (block == nullptr || !block->is_plain()) return false;
  const auto times = std::accumulate(
      seen.begin(), seen.end(), std::uint32_t{0},
      [](std::uint32_t sum, const SeenExit& each) { return sum + each.count.seen; });
  return times >= kHot;
}

void CodeCache::expect_long_run() {
  memory_.settle_first();
  indirect_.widen();
}

bool CodeCache::retranslate_by_profile(const ExitProfile& profile) {
  maker_.end_plain();
  std::unordered_map<std::uint32_t, std::vector<SeenExit>> by_block;
  for (const auto& [exit_id, count] : profile.counts()) {
    if (const auto what = exits_->find(exit_id)) {
      by_block[what->block_number].push_back({exit_id, *what, count});
    }
  }
  const auto is_conditional = [this](TraceeAddr branch) { return maker_.is_conditional(branch); };
  std::size_t made = 0;
  for (auto& [logged, seen] : by_block) {
    if (made == kMostAtOnce) break;
    const bool lengthens = is_hot_and_plain(logged, seen);
    const bool turns = likely_.learn(std::move(seen), *exits_, is_conditional);
    if ((lengthens || turns) && retranslate(logged)) ++made;
  }
  loaded_links_.redirect_all();
  retranslated_ += made;
  return made != 0;
}

bool CodeCache::renew_calls() {
  calls_renewed_ = true;
  if (loaded_.is_usable()) {
    for (const CodeBlock& block : loaded_.code()->parts().blocks) {
      if (block.comes_to_call() && is_in_use(block) && !retranslate(block.logged)) return false;
    }
  }
  loaded_links_.redirect_all();
  const std::size_t count = superblocks_.size();
  for (std::uint32_t index = 0; index < count; ++index) {
    const CodeBlock& block = superblocks_[index];
    if (!block.comes_to_call() || block.is_dropped() || !is_in_use(block)) continue;
    if (!retranslate(block.logged)) drop_block(index);
  }
  return true;
}

// --- the persistent cache -------------------------------------------------------------------

void CodeCache::load(std::shared_ptr<const PersistentCode> kept) {
  const PersistentView& parts = kept->parts();
  // Loaded code begins with dispatch stubs, too; those of another build may differ.
  if (parts.code.size() < miss_.code.size() || parts.code.size() > kTranslationBytes ||
      !std::equal(miss_.code.begin(), miss_.code.end(), parts.code.begin())) {
    return;
  }
  if (kept->records_values() != maker_.records_values()) return;
  memory_.fill_code(parts.code);
  links_.note_changes_before(parts.code.size());
  maker_.go_on_at(parts.code.size());
  exits_ = std::make_shared<decoder::ExitTable>(kept->exits(kept));
  superblocks_.load(kept);
  exit_links_.load(parts.places);
  values_.load(parts.value_offsets);
  loaded_links_.load(kept, exits_);
  loaded_.load(std::move(kept), exits_);
}

void CodeCache::activate(TraceeAddr begin, TraceeAddr end) {
  if (!loaded_.is_usable() || calls_renewed_) return;
  loaded_.activate({begin, end}, [this](TraceeAddr start) { return find_translation(start); });
}

void CodeCache::keep(const PersistentModules& modules, Keeping when,
                     const std::function<void(const PersistentPieces&)>& use) {
  if (!complete_) return;
  std::span<std::uint8_t> code = memory_.host_code().first(maker_.bytes_used());
  std::vector<std::uint8_t> copy;
  if (when == Keeping::kMeanwhile) {
    copy.assign(code.begin(), code.end());
    code = copy;
  } else {
    kept_at_end_ = true;
  }
  save_code({.older = loaded_.code() ? loaded_.code()->parts() : PersistentView{},
             .superblocks = superblocks_,
             .exit_links = exit_links_,
             .exits = *exits_,
             .values = values_,
             .links = links_,
             .miss = miss(),
             .dispatch = memory_.code(),
             .without_calls = calls_renewed_},
            modules, code, use);
}

void CodeCache::leave(const std::shared_ptr<const PersistentCode>& saved) {
  if (cleared_ != 0) return;
  if (kept_at_end_) {
    if (saved) memory_.leave_code({.code = saved->parts().code, .owner = saved, .changed = {}});
    return;
  }
  const auto& loaded = loaded_.code();
  auto changed = links_.changes();
  if (loaded && changed) {
    memory_.leave_code(
        {.code = loaded->parts().code, .owner = loaded, .changed = std::move(*changed)});
  }
}

}  // namespace backtrail::tracee::cache
