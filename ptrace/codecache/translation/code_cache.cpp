#include "ptrace/codecache/translation/code_cache.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "arch/base/check.hpp"
#include "ptrace/codecache/persist/packed_rows.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kAlignment = 16;
constexpr std::uint64_t kPageBytes = 4096;
/// Superblocks made at once. A miss costs as much as several of them.
constexpr std::size_t kBatchBlocks = 4;

/// Superblocks of a small program are long, and the same instructions are in several of them. Where
/// there is much code, most of it runs seldom, and processors' caches are what it is short of.
constexpr std::uint64_t kMuch = 4ULL << 20;
constexpr std::uint64_t kVeryMuch = 12ULL << 20;
std::uint32_t longest_block(std::uint64_t bytes_used) {
  if (bytes_used < kMuch) return 96;
  return bytes_used < kVeryMuch ? 48 : 24;
}

/// From here on superblocks that come to the head of another one end there: a third less code, at
/// the price of a few more exits.
constexpr std::uint64_t kJoinedFrom = 3ULL << 19;
/// And from here on they end with calls, too.
constexpr std::uint64_t kSavedFrom = 6ULL << 20;

}  // namespace

CodeCache::CodeCache(CacheMemory& memory, translate::CodeSource source, CodeFacts facts,
                     const translate::InlineSystemCalls& inline_calls)
    : memory_{memory},
      links_{memory.host_code(), memory.code()},
      facts_{std::move(facts)},
      source_{std::move(source)},
      inline_calls_{inline_calls},
      miss_{translate::make_miss_routine(memory.code())},
      exits_{std::make_shared<decoder::ExitTable>()} {
  source_.stop_before = [this](TraceeAddr at) {
    return splits_.contains(at) || facts_.left_to_cpu(at) != translate::Special::kNone ||
           facts_.may_change(at) != making_checked_;
  };
  source_.decoded = &decoded_;
  source_.likely_target = [this](TraceeAddr branch) { return likely_target(branch); };
  source_.joined_at = [this](TraceeAddr at) { return used_ >= kJoinedFrom && find_body(at); };
  std::copy(miss_.code.begin(), miss_.code.end(), memory_.host_code().begin());
  used_ = (miss_.code.size() + kAlignment - 1) / kAlignment * kAlignment;
  memory_.fill_table(indirect_miss());
}

std::optional<std::uint64_t> CodeCache::reserve(Use use) {
  const std::uint64_t in_front = use == Use::kLanding ? translate::kPadOffset : 0;
  used_ = (used_ + in_front + kAlignment - 1) / kAlignment * kAlignment - in_front;
  if (used_ + kLargestBlock > limit_) return std::nullopt;
  memory_.settle_code(used_);
  return used_;
}

std::variant<TraceeAddr, translate::Special> CodeCache::body(TraceeAddr head) {
  if (const auto known = find_body(head)) return memory_.code() + *known;
  return make_some(head, Use::kDirect);
}

std::variant<TraceeAddr, translate::Special> CodeCache::landing(TraceeAddr head) {
  if (const CodeBlock* known = find_landing(head)) {
    return memory_.code() + known->offset + known->body;
  }
  return make_some(head, Use::kLanding);
}

std::variant<TraceeAddr, translate::Special> CodeCache::make_some(TraceeAddr head, Use use) {
  if (const auto why = facts_.left_to_cpu(head); why != translate::Special::kNone) return why;
  Successors work;
  const auto wanted = make(head, use, work);
  std::size_t made = 1;
  for (std::size_t i = 0;
       made < kBatchBlocks && (i < work.direct.size() || i < work.returns.size()); ++i) {
    // Both lists grow while they are worked off.
    for (const Use next_use : {Use::kDirect, Use::kLanding}) {
      const bool lands = next_use == Use::kLanding;
      const auto& list = lands ? work.returns : work.direct;
      if (i >= list.size() || made >= kBatchBlocks) continue;
      const TraceeAddr next = list[i];
      const bool known = lands ? find_landing(next) != nullptr : find_body(next).has_value();
      if (known || facts_.left_to_cpu(next) != translate::Special::kNone) continue;
      (void)make(next, next_use, work);
      ++made;
    }
  }
  return wanted;
}

std::variant<TraceeAddr, translate::Special> CodeCache::make(TraceeAddr head, Use use,
                                                             Successors& successors) {
  const auto offset = reserve(use);
  if (!offset) return translate::Special::kNone;
  making_checked_ = facts_.may_change(head);
  if (making_checked_) facts_.look_again(head);
  translate::TranslateOptions options{.address = memory_.code() + *offset,
                                      .table = memory_.table(),
                                      .miss = miss(),
                                      .first_exit = exits_->next_number(),
                                      .inline_system_calls = &inline_calls_,
                                      .checked = making_checked_,
                                      .saves_memory = used_ >= kSavedFrom,
                                      .max_instructions = longest_block(used_)};
  if (use == Use::kLanding) options.conflict = first_pad(head);
  auto translated = translate::translate(source_, head, options);
  if (const auto* special = std::get_if<translate::Special>(&translated)) return *special;
  auto& made = std::get<translate::Superblock>(translated);
  std::copy(made.code.begin(), made.code.end(),
            memory_.host_code().begin() + static_cast<std::ptrdiff_t>(*offset));
  const std::uint32_t logged = exits_->add_block(head, made.branches);
  register_exits(made, logged);
  CodeBlock facts{.head = head,
                  .offset = static_cast<std::uint32_t>(*offset),
                  .logged = logged,
                  .size = static_cast<std::uint16_t>(made.code.size()),
                  .body = static_cast<std::uint8_t>(made.body)};
  if (use == Use::kLanding) facts.set(CodeBlock::kLanding);
  if (made.calls) facts.set(CodeBlock::kCalls);
  if (facts_.made_here(head)) {
    facts.set(CodeBlock::kMadeHere);
    ++made_here_;
  }
  const std::uint32_t block = add_block(facts, made.rows, made.ranges);
  note_pages(block, made.ranges);
  used_ = *offset + made.code.size();
  instructions_ += made.instructions;
  connect(made, block, successors);
  if (use == Use::kLanding) open_pad(head, *offset + translate::kPadOffset);
  return options.address + made.body;
}

void CodeCache::connect(const translate::Superblock& made, std::uint32_t block,
                        Successors& successors) {
  if (!blocks_[block].is_landing()) {
    HeadTable::Entry& here = heads_.at(made.head);
    here.block = block;
    point_exits(here, made.address);
  }
  for (const translate::Exit& exit : made.exits) {
    if (exit.link_offset == 0 || exit.kind == translate::ExitKind::kStale) continue;
    HeadTable::Entry& there = heads_.at(exit.to);
    const std::uint32_t index = exit.number - kept_exits_;
    next_[index] = std::exchange(there.first_exit, index);
    if (const auto known = find_body(exit.to)) {
      link(exit.number, memory_.code() + *known);
    } else {
      successors.direct.push_back(exit.to);
    }
  }
  successors.returns.insert(successors.returns.end(), made.returns.begin(), made.returns.end());
}

void CodeCache::register_exits(const translate::Superblock& block, std::uint32_t logged) {
  const std::uint64_t offset = block.address - memory_.code();
  for (const translate::Exit& exit : block.exits) {
    exits_->add_exit(
        {logged, exit.from, exit.to, exit.passed, logged_kind(exit.kind), exit.executed});
    const std::uint64_t link = exit.link_offset == 0 ? 0 : offset + exit.link_offset;
    places_.push_back(ExitPlace::of(link, exit));
    next_.push_back(HeadTable::kNone);
  }
}

std::optional<translate::Exit> CodeCache::exit(std::uint32_t number) const {
  const auto logged = exits_->find(number);
  if (!logged) return std::nullopt;
  const ExitPlace place = place_of(number);
  return translate::Exit{.number = number,
                         .kind = place.kind(logged->kind),
                         .special = place.special(),
                         .passed = static_cast<std::uint16_t>(logged->block.branches.size()),
                         .executed = logged->executed,
                         .from = logged->from,
                         .to = logged->to};
}

std::optional<std::uint32_t> CodeCache::block_at(std::uint64_t offset) const {
  std::size_t begin = 0;
  std::size_t end = blocks_.size();
  while (begin < end) {
    const std::size_t middle = (begin + end) / 2;
    if (blocks_[middle].offset <= offset) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  if (begin == 0) return std::nullopt;
  const CodeBlock& found = blocks_[begin - 1];
  if (offset >= std::uint64_t{found.offset} + found.size) return std::nullopt;
  return static_cast<std::uint32_t>(begin - 1);
}

std::uint32_t CodeCache::add_block(CodeBlock block, std::span<const translate::PcRow> rows,
                                   std::span<const translate::Branch> ranges) {
  std::vector<std::uint8_t> packed;
  pack_rows(rows, block.head, packed);
  block.row_bytes = static_cast<std::uint32_t>(packed.size());
  pack_ranges(ranges, block.head, packed);
  block.range_bytes = static_cast<std::uint16_t>(packed.size() - block.row_bytes);
  block.first_row = kept_rows_ + static_cast<std::uint32_t>(packed_.append(packed));
  blocks_.push_back(block);
  return static_cast<std::uint32_t>(blocks_.size() - 1);
}

std::optional<std::uint32_t> CodeCache::block_of(std::uint32_t logged) const {
  std::size_t begin = 0;
  std::size_t end = blocks_.size();
  while (begin < end) {
    const std::size_t middle = (begin + end) / 2;
    if (blocks_[middle].logged < logged) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  if (begin == blocks_.size() || blocks_[begin].logged != logged) return std::nullopt;
  return static_cast<std::uint32_t>(begin);
}

CodeRanges CodeCache::ranges_of(const CodeBlock& block) const {
  const std::size_t first = block.first_row - kept_rows_ + block.row_bytes;
  return unpack_ranges(packed_.piece(first, block.range_bytes), block.head);
}

std::span<const std::uint8_t> CodeCache::rows_of(const CodeBlock& block) const {
  return packed_.piece(block.first_row - kept_rows_, block.row_bytes);
}

void CodeCache::point_exits(const HeadTable::Entry& head, TraceeAddr target) {
  for (std::uint32_t exit = head.first_exit; exit != HeadTable::kNone; exit = next_[exit]) {
    links_.point(places_[exit].link(), target);
  }
}

void CodeCache::link(std::uint32_t exit_number, TraceeAddr body) {
  const std::uint32_t from = place_of(exit_number).link();
  if (from == 0) return;
  links_.point(from, body);
  if (body - memory_.code() < kept_bytes_) {
    links_to_adopted_.push_back(from);
  } else if (exit_number < kept_exits_) {
    if (const auto target = block_at(body - memory_.code())) from_adopted_[*target].push_back(from);
  }
}

const CodeBlock* CodeCache::find_landing(TraceeAddr head) const {
  for (TraceeAddr at = first_pad(head); at != indirect_miss();) {
    const std::uint64_t pad = at - memory_.code();
    const CodeBlock& block = block_of_pad(pad);
    if (block.head == head) return &block;
    at = next_pad(pad);
  }
  return nullptr;
}

TraceeAddr CodeCache::first_pad(TraceeAddr head) const {
  const EntryTable& table = memory_.entries();
  return table[table.index(head)];
}

TraceeAddr CodeCache::next_pad(std::uint64_t pad) const {
  return memory_.code() + links_.target_of(pad - CodeLinks::kBytes);
}

void CodeCache::open_pad(TraceeAddr head, std::uint64_t pad) {
  EntryTable& table = memory_.entries();
  table.store(table.index(head), memory_.code() + pad);
  make_table_fit(++open_pads_);
}

void CodeCache::make_table_fit(std::size_t pads) {
  EntryTable& table = memory_.entries();
  const std::size_t size = EntryTable::size_for(pads);
  if (size <= table.size()) return;
  std::vector<std::pair<TraceeAddr, std::uint64_t>> open;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::size_t first = open.size();
    for (TraceeAddr at = table[i]; at != indirect_miss();) {
      const std::uint64_t pad = at - memory_.code();
      open.emplace_back(block_of_pad(pad).head, pad);
      at = next_pad(pad);
    }
    // Who was asked last is to be so again.
    std::reverse(open.begin() + static_cast<std::ptrdiff_t>(first), open.end());
  }
  // A thread that is on its way from pad to pad meanwhile may come out where pads end. That is a
  // miss, and finds what it looked for.
  std::vector<std::uint64_t> entries(size, indirect_miss().value());
  for (const auto& [head, pad] : open) {
    std::uint64_t& entry = entries[head.value() & (size - 1)];
    links_.point(pad - CodeLinks::kBytes, TraceeAddr{entry});
    entry = (memory_.code() + pad).value();
  }
  table.replace(entries);
}

void CodeCache::close_pad(TraceeAddr head, std::uint64_t pad) {
  const TraceeAddr at = memory_.code() + pad;
  const TraceeAddr next = next_pad(pad);
  EntryTable& table = memory_.entries();
  const std::size_t index = table.index(head);
  if (table[index] == at) {
    table.store(index, next);
  } else {
    for (TraceeAddr before = table[index]; before != indirect_miss();) {
      const std::uint64_t other = before - memory_.code();
      before = next_pad(other);
      if (before == at) links_.point(other - CodeLinks::kBytes, next);
    }
  }
  begin_pad(pad, translate::kDeadPad);
  if (open_pads_ != 0) --open_pads_;
}

const CodeBlock& CodeCache::block_of_pad(std::uint64_t pad) const {
  if (pad >= kept_bytes_) return blocks_[*block_at(pad)];
  const CodeBlock* block = kept_->block_at(pad);
  BT_CHECK(block != nullptr);
  return *block;
}

void CodeCache::begin_pad(std::uint64_t pad, const std::array<std::uint8_t, 2>& with) {
  std::uint32_t beginning = links_.load(pad);
  std::memcpy(&beginning, with.data(), with.size());
  links_.store(pad, beginning);
}

void CodeCache::revive_pad(std::uint64_t pad) {
  const auto there = memory_.host_code().subspan(pad, translate::kDeadPad.size());
  if (!std::equal(there.begin(), there.end(), translate::kDeadPad.begin())) return;
  begin_pad(pad, translate::pad_beginning(block_of_pad(pad).body));
}

void CodeCache::drop_block(std::uint32_t index) {
  CodeBlock& block = blocks_[index];
  if (block.is_dropped()) return;
  block.set(CodeBlock::kDropped);
  ++drops_;
  if (block.is_landing()) return close_pad(block.head, block.offset + translate::kPadOffset);
  // Exits that led here find the next translation by a miss: what stands there may be a breakpoint.
  HeadTable::Entry& here = heads_.at(block.head);
  here.block = HeadTable::kNone;
  point_exits(here, miss());
  if (const auto adopted = from_adopted_.find(index); adopted != from_adopted_.end()) {
    for (const std::uint32_t link : adopted->second) links_.point(link, miss());
    from_adopted_.erase(adopted);
  }
}

template <typename Look>
void CodeCache::for_each_block_in(TraceeAddr begin, TraceeAddr end, Look look) {
  const std::uint64_t first = begin.value() / kPageBytes;
  const std::uint64_t last = (end.value() - 1) / kPageBytes;
  const auto look_at = [&](std::vector<std::uint32_t>& blocks) {
    // Pages of JITs see thousands of superblocks come and go.
    std::erase_if(blocks, [this](std::uint32_t block) {
      return blocks_[block].is_dropped() && !blocks_[block].is_retired();
    });
    for (const std::uint32_t block : blocks) {
      const CodeRanges ranges = ranges_of(blocks_[block]);
      const bool overlaps = std::any_of(ranges.begin(), ranges.end(), [=](const auto& range) {
        return range.first < end && begin < range.second;
      });
      if (overlaps) look(block, ranges);
    }
  };
  if (last - first < by_page_.size()) {
    for (std::uint64_t page = first; page <= last; ++page) {
      if (const auto found = by_page_.find(page); found != by_page_.end()) {
        look_at(found->second);
      }
    }
  } else {
    for (auto& [page, blocks] : by_page_) {
      if (first <= page && page <= last) look_at(blocks);
    }
  }
}

void CodeCache::drop(TraceeAddr begin, TraceeAddr end) {
  deactivate(begin, end);
  for_each_block_in(begin, end,
                    [this](std::uint32_t block, const CodeRanges&) { drop_block(block); });
}

void CodeCache::retire(TraceeAddr begin, TraceeAddr end) {
  deactivate(begin, end);
  for_each_block_in(begin, end, [&](std::uint32_t index, const CodeRanges& ranges) {
    if (blocks_[index].is_dropped()) return;
    drop_block(index);
    const bool alone = std::all_of(ranges.begin(), ranges.end(), [=](const auto& range) {
      return begin <= range.first && range.second <= end;
    });
    if (alone) blocks_[index].set(CodeBlock::kRetired);
  });
}

void CodeCache::forget_retired(TraceeAddr begin, TraceeAddr end) {
  for_each_block_in(begin, end, [this](std::uint32_t index, const CodeRanges&) {
    blocks_[index].reset(CodeBlock::kRetired);
  });
}

void CodeCache::note_pages(std::uint32_t block, std::span<const translate::Branch> ranges) {
  std::uint64_t last = ~std::uint64_t{0};
  for (const auto& [begin, end] : ranges) {
    for (std::uint64_t page = begin.value() / kPageBytes; page <= (end.value() - 1) / kPageBytes;
         ++page) {
      if (page != last) by_page_[page].push_back(block);
      last = page;
    }
  }
}

std::variant<TraceeAddr, translate::Special> CodeCache::renew(std::uint32_t exit_number) {
  const translate::Exit stale = *exit(exit_number);
  std::vector<std::uint32_t> adopted;
  const auto old =
      exit_number < kept_exits_ ? std::nullopt : block_at(place_of(exit_number).link());
  if (old && !blocks_[*old].is_dropped()) {
    if (const auto found = from_adopted_.find(*old); found != from_adopted_.end()) {
      adopted = found->second;
    }
    drop_block(*old);
    for (const auto& [begin, end] : ranges_of(blocks_[*old])) {
      const auto blocks = by_page_.find(begin.value() / kPageBytes);
      if (blocks != by_page_.end()) std::erase(blocks->second, *old);
    }
  }
  ++renewed_;
  // Whoever left it by this exit has rcx in its slot, too.
  if (old && blocks_[*old].is_landing()) return landing(stale.to);
  auto made = body(stale.to);
  const auto* address = std::get_if<TraceeAddr>(&made);
  if (address == nullptr) return made;
  // Whoever came here is meant to come here; our own exits do already.
  const HeadTable::Entry* now = heads_.find(stale.to);
  if (now != nullptr && now->block != HeadTable::kNone) {
    for (const std::uint32_t from : adopted) {
      links_.point(from, *address);
      from_adopted_[now->block].push_back(from);
    }
  }
  return made;
}

std::uint64_t CodeCache::source_bytes() const {
  CodeRanges ranges;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const CodeRanges more = ranges_of(blocks_[i]);
    ranges.insert(ranges.end(), more.begin(), more.end());
  }
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
  complete_ = false;
  adopted_current_ = false;
  active_.clear();
  links_to_adopted_.clear();
  redirected_.clear();
  kept_pads_.clear();
  blocks_.clear();
  made_here_ = 0;
  packed_.clear();
  heads_.clear();
  by_page_.clear();
  from_adopted_.clear();
  kept_bytes_ = 0;
  used_ = (miss_.code.size() + kAlignment - 1) / kAlignment * kAlignment;
  memory_.entries().fill(indirect_miss());
  open_pads_ = 0;
  ++cleared_;
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
    return CodePlace{.kind = CodePlace::Kind::kMiss,
                     .row = miss_.row_at(static_cast<std::uint32_t>(offset)),
                     .registers_saved = offset >= miss_.saved_at};
  }
  const bool adopted = offset < kept_bytes_;
  const auto place = adopted ? std::nullopt : block_at(offset);
  const CodeBlock* block = adopted ? kept_->block_at(offset) : place ? &blocks_[*place] : nullptr;
  if (block == nullptr) return std::nullopt;
  const std::uint64_t within = offset - block->offset;
  const auto row =
      adopted ? kept_->row(*block, within) : row_at(rows_of(*block), block->head, within);
  if (!row) return std::nullopt;
  return CodePlace{.row = *row, .logged = exits_->block(block->logged)};
}

}  // namespace backtrail::tracee::cache
