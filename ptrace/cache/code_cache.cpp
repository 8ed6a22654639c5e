#include "ptrace/cache/code_cache.hpp"

#include <algorithm>
#include <utility>

#include "ptrace/cache/packed_rows.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kAlignment = 16;
constexpr std::uint64_t kPageBytes = 4096;
/// More than any superblock takes.
constexpr std::uint32_t kLargestBlock = 16 * 1024;
constexpr std::uint32_t kLargestPad = 128;
/// Superblocks made at once. A miss costs as much as several of them.
constexpr std::size_t kBatchBlocks = 4;

/// Superblocks of a small program are long, and the same instructions are in several of them. Where
/// there is much code, most of it runs seldom, and processors' caches are what it is short of.
std::uint32_t longest_block(std::uint64_t bytes_used) {
  constexpr std::uint64_t kMuch = 4ULL << 20;
  constexpr std::uint64_t kVeryMuch = 12ULL << 20;
  if (bytes_used < kMuch) return 96;
  return bytes_used < kVeryMuch ? 48 : 24;
}

/// From here on superblocks that come to the head of another one end there: a third less code, at
/// the price of a few more exits.
constexpr std::uint64_t kJoinedFrom = 3ULL << 19;

std::size_t table_index(TraceeAddr head) {
  return head.value() % translate::kTableEntries;
}

}  // namespace

CodeCache::CodeCache(CacheMemory& memory, translate::CodeSource source, CodeFacts facts,
                     const translate::InlineSystemCalls& inline_calls)
    : memory_{memory},
      facts_{std::move(facts)},
      source_{std::move(source)},
      inline_calls_{inline_calls},
      miss_{translate::make_miss_routine(memory.code())},
      exits_{std::make_shared<decoder::ExitTable>()} {
  source_.stop_before = [this](TraceeAddr at) {
    return splits_.contains(at) || facts_.left_to_cpu(at) != translate::Special::kNone ||
           facts_.may_change(at) != making_checked_;
  };
  source_.joined_at = [this](TraceeAddr at) { return used_ >= kJoinedFrom && find_body(at); };
  std::copy(miss_.code.begin(), miss_.code.end(), memory_.host_code().begin());
  used_ = (miss_.code.size() + kAlignment - 1) / kAlignment * kAlignment;
  memory_.fill_table(miss());
}

std::optional<std::uint64_t> CodeCache::reserve(std::uint32_t bytes) {
  used_ = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  if (used_ + bytes > limit_) return std::nullopt;
  memory_.settle_code(used_);
  return used_;
}

std::variant<TraceeAddr, translate::Special> CodeCache::body(TraceeAddr head) {
  if (const auto known = find_body(head)) return memory_.code() + *known;
  if (const auto why = facts_.left_to_cpu(head); why != translate::Special::kNone) return why;
  Successors work;
  const auto wanted = make(head, work);
  std::size_t made = 1;
  for (std::size_t i = 0;
       made < kBatchBlocks && (i < work.direct.size() || i < work.returns.size()); ++i) {
    // Both lists grow while they are worked off.
    for (const bool returned : {false, true}) {
      const auto& list = returned ? work.returns : work.direct;
      if (i >= list.size() || made >= kBatchBlocks) continue;
      const TraceeAddr next = list[i];
      if (find_body(next) || facts_.left_to_cpu(next) != translate::Special::kNone) continue;
      const auto body = make(next, work);
      ++made;
      const auto* address = std::get_if<TraceeAddr>(&body);
      if (returned && address != nullptr) publish(next, *address);
    }
  }
  return wanted;
}

std::variant<TraceeAddr, translate::Special> CodeCache::make(TraceeAddr head,
                                                             Successors& successors) {
  const auto offset = reserve(kLargestBlock);
  if (!offset) return translate::Special::kNone;
  making_checked_ = facts_.may_change(head);
  if (making_checked_) facts_.look_again(head);
  const translate::TranslateOptions options{.address = memory_.code() + *offset,
                                            .table = memory_.table(),
                                            .miss = miss(),
                                            .first_exit = exits_->next_number(),
                                            .inline_system_calls = &inline_calls_,
                                            .checked = making_checked_,
                                            .max_instructions = longest_block(used_)};
  auto translated = translate::translate(source_, head, options);
  if (const auto* special = std::get_if<translate::Special>(&translated)) return *special;
  auto& made = std::get<translate::Superblock>(translated);
  std::copy(made.code.begin(), made.code.end(),
            memory_.host_code().begin() + static_cast<std::ptrdiff_t>(*offset));
  const auto& logged = exits_->add_block({head, made.branches});
  register_exits(made, logged);
  Block& block = add_block(head, *offset, made.code.size(), made.rows);
  block.first_range = static_cast<std::uint32_t>(ranges_.size());
  block.ranges = static_cast<std::uint32_t>(made.ranges.size());
  ranges_.insert(ranges_.end(), made.ranges.begin(), made.ranges.end());
  block.logged = &logged;
  block.checked = options.checked;
  note_pages(block);
  by_head_[head] = &block;
  used_ = *offset + made.code.size();
  instructions_ += made.instructions;
  if (const auto waiting = waiting_.find(head); waiting != waiting_.end()) {
    for (const std::uint32_t number : waiting->second) link(number, options.address);
    waiting_.erase(waiting);
  }
  for (const translate::Exit& exit : made.exits) {
    if (exit.link_offset == 0 || exit.kind == translate::ExitKind::kStale) continue;
    if (const auto known = find_body(exit.to)) {
      link(exit.number, memory_.code() + *known);
    } else {
      waiting_[exit.to].push_back(exit.number);
      successors.direct.push_back(exit.to);
    }
  }
  successors.returns.insert(successors.returns.end(), made.returns.begin(), made.returns.end());
  return options.address;
}

void CodeCache::register_exits(const translate::Superblock& block,
                               const decoder::LoggedBlock& logged) {
  const std::uint64_t offset = block.address - memory_.code();
  for (const translate::Exit& exit : block.exits) {
    exits_->add_exit(
        {&logged, exit.from, exit.to, exit.passed, logged_kind(exit.kind), exit.executed});
    const std::uint64_t link = exit.link_offset == 0 ? 0 : offset + exit.link_offset;
    exit_places_.push_back({static_cast<std::uint32_t>(link), exit.kind, exit.special});
  }
}

std::optional<translate::Exit> CodeCache::exit(std::uint32_t number) const {
  if (number < kept_exits_) return kept_->exit(number);
  if (number - kept_exits_ >= exit_places_.size()) return std::nullopt;
  const ExitPlace& place = exit_places_[number - kept_exits_];
  const decoder::LoggedExit& logged = *exits_->find(number);
  return translate::Exit{.number = number,
                         .kind = place.kind,
                         .special = place.special,
                         .passed = logged.passed,
                         .executed = logged.executed,
                         .from = logged.from,
                         .to = logged.to};
}

CodeCache::Block* CodeCache::block_at(std::uint64_t offset) const {
  const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), offset);
  if (after == offsets_.begin()) return nullptr;
  Block* found = blocks_[static_cast<std::size_t>(after - offsets_.begin()) - 1].get();
  return offset < std::uint64_t{found->offset} + found->size ? found : nullptr;
}

CodeCache::Block& CodeCache::add_block(TraceeAddr head, std::uint64_t offset, std::size_t size,
                                       std::span<const translate::PcRow> rows) {
  Block& block = *blocks_.emplace_back(std::make_unique<Block>());
  block.head = head;
  block.offset = static_cast<std::uint32_t>(offset);
  offsets_.push_back(block.offset);
  block.size = static_cast<std::uint32_t>(size);
  block.first_row = static_cast<std::uint32_t>(rows_.size());
  pack_rows(rows, head, rows_);
  block.row_bytes = static_cast<std::uint32_t>(rows_.size()) - block.first_row;
  return block;
}

void CodeCache::point(std::uint64_t link, TraceeAddr target) {
  const TraceeAddr behind = memory_.code() + link + sizeof(std::uint32_t);
  memory_.store_link(link, static_cast<std::uint32_t>(target - behind));
}

bool CodeCache::lead(std::uint64_t link, TraceeAddr body) {
  if (body - memory_.code() < kept_bytes_) {
    links_to_adopted_.push_back(link);
  } else {
    Block* target = block_at(body - memory_.code());
    if (target == nullptr || target->dropped) return false;
    target->incoming.push_back(static_cast<std::uint32_t>(link));
  }
  point(link, body);
  return true;
}

void CodeCache::link(std::uint32_t exit_number, TraceeAddr body) {
  const std::uint64_t from = link_of(exit_number);
  if (from != 0) (void)lead(from, body);
}

void CodeCache::publish(TraceeAddr head, TraceeAddr body) {
  if (Pad* known = find_pad(head)) {
    if (known->body == body) return;
    if (lead(known->body_link, body)) known->body = body;
    return;
  }
  const auto offset = reserve(kLargestPad);
  if (!offset) return;
  const TraceeAddr address = memory_.code() + *offset;
  const std::size_t index = table_index(head);
  // What had this entry is asked when the new pad's target is another.
  auto pad = translate::make_landing_pad(address, head, body, memory_.entry(index));
  std::copy(pad.code.begin(), pad.code.end(),
            memory_.host_code().begin() + static_cast<std::ptrdiff_t>(*offset));
  add_block(head, *offset, pad.code.size(), pad.rows).is_pad = true;
  used_ = *offset + pad.code.size();
  if (!lead(*offset + pad.body_link, body)) return;
  pads_[head] = {.address = *offset,
                 .body_link = *offset + pad.body_link,
                 .conflict_link = *offset + pad.conflict_link,
                 .body = body};
  memory_.store_entry(index, address);
}

void CodeCache::drop_block(Block& block) {
  if (block.dropped || block.is_pad) return;
  block.dropped = true;
  complete_ &= block.checked;
  // Exits that led here find the next translation by a miss: what stands there may be a breakpoint.
  for (const std::uint32_t link : block.incoming) point(link, miss());
  block.incoming = {};
  by_head_.erase(block.head);
  if (Pad* pad = find_pad(block.head)) pad->body = miss();
}

void CodeCache::drop(TraceeAddr begin, TraceeAddr end) {
  if (std::any_of(active_.begin(), active_.end(), [=](const translate::Branch& module) {
        return module.first < end && begin < module.second;
      })) {
    drop_adopted();
  }
  const std::uint64_t first = begin.value() / kPageBytes;
  const std::uint64_t last = (end.value() - 1) / kPageBytes;
  const auto drop_in = [&](const std::vector<Block*>& blocks) {
    for (Block* block : blocks) {
      const auto ranges = ranges_of(*block);
      const bool overlaps = std::any_of(ranges.begin(), ranges.end(), [=](const auto& range) {
        return range.first < end && begin < range.second;
      });
      if (overlaps) drop_block(*block);
    }
  };
  if (last - first < by_page_.size()) {
    for (std::uint64_t page = first; page <= last; ++page) {
      if (const auto found = by_page_.find(page); found != by_page_.end()) drop_in(found->second);
    }
  } else {
    for (const auto& [page, blocks] : by_page_) drop_in(blocks);
  }
}

void CodeCache::note_pages(Block& block) {
  std::uint64_t last = ~std::uint64_t{0};
  for (const auto& [begin, end] : ranges_of(block)) {
    for (std::uint64_t page = begin.value() / kPageBytes; page <= (end.value() - 1) / kPageBytes;
         ++page) {
      if (page != last) by_page_[page].push_back(&block);
      last = page;
    }
  }
}

std::variant<TraceeAddr, translate::Special> CodeCache::renew(std::uint32_t exit_number) {
  const translate::Exit stale = *exit(exit_number);
  std::vector<std::uint32_t> incoming;
  Block* old = exit_number < kept_exits_ ? nullptr : block_at(link_of(exit_number));
  if (old != nullptr && !old->dropped) {
    incoming = old->incoming;
    drop_block(*old);
    for (const auto& [begin, end] : ranges_of(*old)) {
      const auto blocks = by_page_.find(begin.value() / kPageBytes);
      if (blocks != by_page_.end()) std::erase(blocks->second, old);
    }
  }
  ++renewed_;
  auto made = body(stale.to);
  if (const auto* address = std::get_if<TraceeAddr>(&made)) {
    // Whoever came here is meant to come here.
    for (const std::uint32_t from : incoming) (void)lead(from, *address);
    if (const auto pad = pads_.find(stale.to); pad != pads_.end()) pad->second.body = *address;
  }
  return made;
}

std::uint64_t CodeCache::source_bytes() const {
  std::vector<translate::Branch> ranges = ranges_;
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t bytes = 0;
  TraceeAddr counted;
  for (const auto& [begin, end] : ranges) {
    if (end <= counted) continue;
    bytes += end - std::max(begin, counted);
    counted = end;
  }
  return bytes;
}

void CodeCache::clear() {
  drop_adopted();
  blocks_.clear();
  offsets_.clear();
  rows_.clear();
  ranges_.clear();
  by_head_.clear();
  by_page_.clear();
  pads_.clear();
  waiting_.clear();
  kept_bytes_ = 0;
  used_ = (miss_.code.size() + kAlignment - 1) / kAlignment * kAlignment;
  for (std::size_t i = 0; i < translate::kTableEntries; ++i) memory_.store_entry(i, miss());
  ++cleared_;
}

void CodeCache::drop_all() {
  drop_adopted();
  for (const auto& block : blocks_) drop_block(*block);
}

void CodeCache::split_at(TraceeAddr address) {
  complete_ = false;
  splits_.insert(address);
  drop(address, address + 1);
}

std::optional<CodePlace> CodeCache::locate(TraceeAddr address) const {
  if (!memory_.has_code(address)) return std::nullopt;
  const std::uint64_t offset = address - memory_.code();
  if (offset < miss_.code.size()) {
    return CodePlace{CodePlace::Kind::kMiss, nullptr, nullptr, offset >= miss_.saved_at};
  }
  if (offset < kept_bytes_) return locate_adopted(offset);
  const Block* block = block_at(offset);
  if (block == nullptr) return std::nullopt;
  const auto row = row_at(rows_of(*block), block->head, offset - block->offset);
  if (!row) return std::nullopt;
  located_row_ = *row;
  return CodePlace{block->is_pad ? CodePlace::Kind::kPad : CodePlace::Kind::kBlock, &located_row_,
                   block->logged, false};
}

}  // namespace backtrail::tracee::cache
