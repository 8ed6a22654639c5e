// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/cache_log.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "arch/base/value_kind.hpp"
#include "decoder/trace/constant_memory.hpp"

namespace backtrail::decoder {
namespace {

/// Most facts of memory that are kept of dropped events, before ranges that are not constant any
/// more are left out.
constexpr std::size_t kMostDroppedFacts = 1UL << 16;

constexpr std::size_t kChunkEntries = 64UL * 1024;
/// First capacity of a log, in entries. Most threads log no more, and a full chunk needs its own
/// mmap and munmap.
constexpr std::size_t kFirstNumbers = 1024;
constexpr std::size_t kBatchRecords = 16UL * 1024;
constexpr std::size_t kWorthPopulating = 16UL * 1024;

}  // namespace

void CacheLogDecoder::begin_at(TraceeAddr at, std::vector<Record>& out) {
  if (std::exchange(lost_, false)) {
    out.push_back(gap(GapReason::kOverflow, TraceeAddr{}, at));
    indirect_from_.reset();
    tell_waiting(out);
    return;
  }
  if (!indirect_from_) return;
  out.push_back(branch(*indirect_from_, at));
  indirect_from_.reset();
  tell_waiting(out);
}

void CacheLogDecoder::tell_waiting(std::vector<Record>& out) {
  for (const ValueFact& fact : waiting_) {
    facts_.push_back(fact);
    facts_.back().record = out.size();
  }
  waiting_.clear();
}

void CacheLogDecoder::add_memory(const ValueFact& fact, std::vector<Record>& out) {
  waiting_.push_back(fact);
  if (!lost_ && !indirect_from_) tell_waiting(out);
}

void CacheLogDecoder::entries(std::span<const std::uint32_t> entries, std::vector<Record>& out) {
  // Most programs have no code that may change.
  const bool has_code = !exits_.code().empty();
  if (!has_code) code_.lose();
  for (const std::uint32_t entry : entries) {
    const auto exit = exits_.find(entry);
    if (!exit) {
      lose(out);
      continue;
    }
    begin_at(exit->block.start, out);
    const std::size_t before = out.size();
    const std::size_t facts = facts_.size();
    if (has_code) {
      code_.leave(*exit, before);
      code_.hand_on(facts_);
    }
    if (values_ != nullptr) add_facts(entry, *exit, before, facts);
    out.resize(before + exit->block.branches.size());
    for (std::size_t i = 0; i < exit->block.branches.size(); ++i) {
      const auto [from, to] = exit->block.branch(i);
      out[before + i] = branch(from, to);
    }
    if (exit->kind == LoggedExitKind::kDirect) out.push_back(branch(exit->from, exit->to));
    if (exit->kind == LoggedExitKind::kIndirect) indirect_from_ = exit->from;
  }
}

void CacheLogDecoder::add_facts(std::uint32_t exit_id, const LoggedExit& exit, std::size_t before,
                                std::size_t first) {
  const std::size_t middle = facts_.size();
  const ValuePoints& points = exits_.values();
  const std::uint16_t count = points.before_exit(exit_id);
  const auto values = points.of_block(exit.block_number);
  for (std::size_t i = 0; i < count && i < values.size(); ++i) {
    const auto value = values_->at(next_value_ + i);
    if (!value) continue;
    facts_.push_back({.record = before + values[i].passed,
                      .pc = exit.block.at(values[i].pc),
                      .value = *value,
                      .kind = values[i].kind});
  }
  next_value_ += count;
  const auto at = [this](std::size_t index) {
    return facts_.begin() + static_cast<std::ptrdiff_t>(index);
  };
  std::inplace_merge(at(first), at(middle), facts_.end(),
                     [](const ValueFact& a, const ValueFact& b) { return a.record < b.record; });
}

void CacheLogDecoder::arrive(TraceeAddr at, std::vector<Record>& out) {
  begin_at(at, out);
  code_.arrive(at, out.size());
  code_.hand_on(facts_);
}

void CacheLogDecoder::add(const Record& record, std::vector<Record>& out) {
  // A stepped record begins where the entries before it ended.
  begin_at(record.from, out);
  code_.take(record, out.size());
  code_.hand_on(facts_);
  out.push_back(record);
}

void CacheLogDecoder::execute(std::uint32_t block, std::size_t passed,
                              std::optional<TraceeAddr> end, std::vector<Record>& out) {
  code_.execute(block, passed, end, out.size());
  code_.hand_on(facts_);
}

void CacheLogDecoder::step(TraceeAddr pc, const ExecutedInsn& insn, std::vector<Record>& out) {
  code_.step(pc, insn.view(), out.size());
  code_.hand_on(facts_);
}

void CacheLogDecoder::lose(std::vector<Record>&) {
  lost_ = true;
  indirect_from_.reset();
  code_.lose();
}

void CacheLogDecoder::pause(std::vector<Record>& out) {
  code_.pause(out.size());
  code_.hand_on(facts_);
  // Older facts of the same memory may be true no more.
  for (const ValueFact& fact : waiting_) {
    facts_.push_back({out.size(), fact.pc, fact.value, arch::kVariableKind});
  }
}

CacheLog::CacheLog(std::shared_ptr<const ExitTable> exits, std::uint64_t limit_bytes,
                   FreshMemory fresh_memory)
    : exits_{std::move(exits)},
      fresh_memory_{fresh_memory},
      decoder_{*exits_},
      limit_entries_{std::max<std::uint64_t>(limit_bytes / sizeof(std::uint32_t), kChunkEntries)} {}

CacheLog::Chunk& CacheLog::new_chunk() {
  std::optional<Chunk> spare = drop_old();
  return chunks_.emplace_back(spare ? std::move(*spare) : Chunk{});
}

CacheLog::Chunk& CacheLog::open_chunk() {
  if (!chunks_.empty() && chunks_.back().events.size() < kChunkEntries) return chunks_.back();
  return new_chunk();
}

CacheLog::Chunk& CacheLog::open_copied(std::size_t coming) {
  Chunk& last = open_chunk();
  const bool has_room = last.held.empty() && last.copied.size() < kChunkEntries;
  Chunk& chunk = has_room ? last : new_chunk();
  give_room(chunk.copied, coming);
  return chunk;
}

void CacheLog::give_room(std::vector<std::uint32_t>& entries, std::size_t coming) const {
  const std::size_t wanted = std::min(entries.size() + coming, kChunkEntries);
  if (wanted <= entries.capacity()) return;
  const bool is_young = entries_seen_ <= kChunkEntries;
  const std::size_t least = std::max(kFirstNumbers, 2 * entries.capacity());
  std::vector<std::uint32_t> larger;
  larger.reserve(is_young ? std::clamp(wanted, std::min(least, kChunkEntries), kChunkEntries)
                          : kChunkEntries);
  const std::size_t bytes = wanted * sizeof(std::uint32_t);
  if (fresh_memory_ != nullptr && bytes >= kWorthPopulating) {
    void* begin = larger.data();
    fresh_memory_({static_cast<std::uint8_t*>(begin), bytes});
  }
  larger.insert(larger.end(), entries.begin(), entries.end());
  entries = std::move(larger);
}

void CacheLog::count_dropped(std::uint64_t entries) {
  entries_dropped_ += entries;
  entries_done_ += entries;
  pins_.erase(pins_.begin(), pins_.lower_bound(entries_done_));
  dropped_ = true;
}

void CacheLog::keep_memory(const Event& event) {
  std::ranges::copy_if(event.facts, std::back_inserter(dropped_memory_),
                       [](const ValueFact& fact) { return arch::is_of_memory(fact.kind); });
  if (dropped_memory_.size() <= kMostDroppedFacts) return;
  // All that is constant now counts as constant from the next place on.
  ConstantMemory constant;
  for (const ValueFact& fact : dropped_memory_) constant.take(fact);
  dropped_memory_.assign(1, {0, TraceeAddr{}, ~std::uint64_t{0}, arch::kVariableKind});
  std::ranges::copy(constant.facts(), std::back_inserter(dropped_memory_));
}

CacheLog::Chunk CacheLog::drop_oldest() {
  Chunk oldest = std::move(chunks_.front());
  chunks_.pop_front();
  held_ -= oldest.size();
  count_dropped(oldest.entries().size());
  for (const Event& event : oldest.events) keep_memory(event);
  return oldest;
}

std::optional<CacheLog::Chunk> CacheLog::drop_old() {
  std::optional<Chunk> spare;
  while (!chunks_.empty() && held_ >= limit_entries_ + chunks_.front().size()) {
    // Reuses the dropped chunk's memory; fresh memory costs a page fault every 4 KiB.
    spare = drop_oldest();
    spare->copied.clear();
    spare->held = {};
    spare->events.clear();
  }
  return spare;
}

void CacheLog::add_entries(std::span<const std::uint32_t> entries) {
  entries_seen_ += entries.size();
  if (const std::uint64_t most = limit_entries_ + kChunkEntries; entries.size() > most) {
    while (!chunks_.empty()) (void)drop_oldest();
    count_dropped(entries.size() - most);
    entries = entries.last(most);
  }
  while (!entries.empty()) {
    Chunk& chunk = open_copied(entries.size());
    const std::size_t room = kChunkEntries - chunk.copied.size();
    const auto part = entries.first(std::min(room, entries.size()));
    chunk.copied.insert(chunk.copied.end(), part.begin(), part.end());
    held_ += part.size();
    entries = entries.subspan(part.size());
  }
}

void CacheLog::hold_entries(std::span<const std::uint32_t> entries) {
  if (entries.empty()) return;
  entries_seen_ += entries.size();
  Chunk* last = &open_chunk();
  const bool goes_on =
      !last->held.empty() && last->held.data() + last->held.size() == entries.data();
  if (!goes_on && (!last->held.empty() || !last->copied.empty())) last = &new_chunk();
  last->held = goes_on ? std::span{last->held.data(), last->held.size() + entries.size()} : entries;
  held_ += entries.size();
}

void CacheLog::forget(std::span<const std::uint32_t> memory) {
  const auto is_there = [&](const Chunk& chunk) {
    return !chunk.held.empty() && chunk.held.data() < memory.data() + memory.size() &&
           memory.data() < chunk.held.data() + chunk.held.size();
  };
  while (std::any_of(chunks_.begin(), chunks_.end(), is_there)) (void)drop_oldest();
}

void CacheLog::drop_numbers(std::size_t count) {
  Chunk& chunk = chunks_.front();
  if (chunk.held.empty()) {
    chunk.copied.erase(chunk.copied.begin(),
                       chunk.copied.begin() + static_cast<std::ptrdiff_t>(count));
  } else {
    chunk.held = chunk.held.subspan(count);
  }
  const std::size_t before = chunk.events.size();
  std::erase_if(chunk.events, [=, this](const Event& event) {
    if (event.before < count) keep_memory(event);
    return event.before < count;
  });
  for (Event& event : chunk.events) event.before -= count;
  held_ -= count + (before - chunk.events.size());
  count_dropped(count);
}

std::uint64_t CacheLog::keep_newest(std::uint64_t branches) {
  constexpr std::size_t kStep = 4096;
  std::uint64_t kept = 0;
  std::size_t chunk = chunks_.size();
  std::size_t end = 0;  // Entries not kept in the oldest chunk that is kept.
  while (chunk != 0 && kept <= branches) {
    const auto entries = chunks_[--chunk].entries();
    for (end = entries.size(); end != 0 && kept <= branches;) {
      const std::size_t begin = end - std::min(end, kStep);
      kept += exits_->branches_of(entries.subspan(begin, end - begin));
      end = begin;
    }
  }
  if (kept <= branches) return 0;
  std::uint64_t dropped = 0;
  for (; chunk != 0; --chunk) dropped += exits_->branches_of(drop_oldest().entries());
  if (end != 0) {
    dropped += exits_->branches_of(chunks_.front().entries().first(end));
    drop_numbers(end);
  }
  return dropped;
}

void CacheLog::clear() {
  while (!chunks_.empty()) (void)drop_oldest();
}

std::uint64_t CacheLog::own_newest(std::uint64_t entries) {
  std::uint64_t dropped = 0;
  while (chunks_.size() > 1 && held_ - chunks_.front().size() >= entries) {
    dropped += exits_->branches_of(drop_oldest().entries());
  }
  if (held_ > entries) {
    const auto oldest = chunks_.front().entries();
    const std::size_t count = std::min<std::uint64_t>(held_ - entries, oldest.size());
    dropped += exits_->branches_of(oldest.first(count));
    if (count != 0) drop_numbers(count);
  }
  if (values_) values_->own(entries);
  for (Chunk& chunk : chunks_) {
    const auto kept = chunk.entries();
    chunk.copied = std::vector<std::uint32_t>{kept.begin(), kept.end()};
    chunk.held = {};
    chunk.events.shrink_to_fit();
  }
  return dropped;
}

void CacheLog::end_values(std::uint64_t next, std::uint64_t left) {
  if (!values_) return;
  values_->end_writing(next);
  values_->add_anchor(entries_seen_, left, entries_done_);
}

void CacheLog::add_facts(std::span<const ValueFact> facts) {
  if (facts.empty()) return;
  Chunk& chunk = open_chunk();
  chunk.events.push_back(
      {chunk.entries().size(), std::nullopt, TraceeAddr{}, {facts.begin(), facts.end()}});
  ++held_;
}

void CacheLog::add_executed(std::uint32_t block, std::size_t passed,
                            std::optional<TraceeAddr> end) {
  Chunk& chunk = open_chunk();
  chunk.events.push_back(
      {.before = chunk.entries().size(), .executed = Executed{block, passed, end}});
  ++held_;
}

void CacheLog::add_stepped(TraceeAddr pc, const ExecutedInsn& insn) {
  Chunk& chunk = open_chunk();
  chunk.events.push_back({.before = chunk.entries().size(), .arrival = pc, .stepped = insn});
  ++held_;
}

void CacheLog::add_arrival(TraceeAddr at) {
  Chunk& chunk = open_chunk();
  chunk.events.push_back({chunk.entries().size(), std::nullopt, at});
  ++held_;
}

void CacheLog::add_record(const Record& record) {
  if (record.kind == kPinRecord && record.payload != 0) {
    pins_.emplace(entries_seen_ + record.payload, record);
    return;
  }
  Chunk& chunk = open_chunk();
  chunk.events.push_back({chunk.entries().size(), record, TraceeAddr{}});
  ++held_;
}

void CacheLog::align_values() {
  stretches_.clear();
  decoder_.use_values(nullptr, 0);
  if (!values_) return;
  auto chunk = chunks_.begin();
  std::uint64_t begin = entries_done_;
  // The ranges come in ascending order.
  const auto values_of = [&](std::uint64_t from, std::uint64_t to) {
    std::uint64_t sum = 0;
    while (from < to && chunk != chunks_.end()) {
      const auto entries = chunk->entries();
      const std::uint64_t end = begin + entries.size();
      for (; from < std::min(to, end); ++from) {
        sum += exits_->values().before_exit(entries[from - begin]);
      }
      if (from < end) break;
      begin = end;
      ++chunk;
    }
    return sum;
  };
  stretches_ = values_->align(entries_done_, values_of);
}

void CacheLog::hand_on(TraceConsumer& consumer, std::vector<Record>& out) {
  if (!out.empty()) consumer.consume(out);
  if (std::vector<ValueFact>& facts = decoder_.facts(); !facts.empty()) {
    // Consumers count from the newest record.
    for (ValueFact& fact : facts) fact.record = out.size() - fact.record;
    consumer.consume_facts(facts);
    facts.clear();
  }
  out.clear();
}

void CacheLog::tell(const Record& pin, TraceConsumer& consumer, std::vector<Record>& before) {
  hand_on(consumer, before);
  consumer.consume_mark(pin_mark(pin, decoder_.arriving() ? 1 : 0));
}

/// Decodes in steps, so that the records of a busy thread's single large chunk are never all in
/// memory.
void CacheLog::decode_plain(std::span<const std::uint32_t> entries, TraceConsumer& consumer,
                            std::vector<Record>& out) {
  constexpr std::size_t kAtOnce = 4096;
  while (!entries.empty()) {
    auto part = entries.first(std::min(kAtOnce, entries.size()));
    while (!stretches_.empty() && stretches_.front().entry <= entries_done_) {
      const auto from = stretches_.front().value;
      decoder_.use_values(from ? values_.get() : nullptr, from.value_or(0));
      stretches_.pop_front();
    }
    if (!stretches_.empty()) {
      part = part.first(std::min(part.size(), stretches_.front().entry - entries_done_));
    }
    decoder_.entries(part, out);
    entries = entries.subspan(part.size());
    entries_done_ += part.size();
    if (out.size() >= kBatchRecords) hand_on(consumer, out);
  }
}

void CacheLog::decode_entries(std::span<const std::uint32_t> entries, TraceConsumer& consumer,
                              std::vector<Record>& out) {
  while (!pins_.empty() && pins_.begin()->first <= entries_done_ + entries.size()) {
    const std::size_t before = pins_.begin()->first - entries_done_;
    decode_plain(entries.first(before), consumer, out);
    entries = entries.subspan(before);
    tell(pins_.begin()->second, consumer, out);
    pins_.erase(pins_.begin());
  }
  decode_plain(entries, consumer, out);
}

void CacheLog::decode_event(const Event& event, TraceConsumer& consumer, std::vector<Record>& out) {
  if (event.record && event.record->kind == kPinRecord) {
    tell(*event.record, consumer, out);
  } else if (event.record) {
    decoder_.add(*event.record, out);
  } else if (event.executed) {
    const auto& [block, passed, end] = *event.executed;
    decoder_.execute(block, passed, end, out);
  } else if (event.stepped) {
    decoder_.arrive(event.arrival, out);
    decoder_.step(event.arrival, *event.stepped, out);
  } else if (!event.facts.empty()) {
    // A place is known only by a record that leads there.
    const bool is_known = !decoder_.arriving();
    for (const ValueFact& fact : event.facts) {
      if (arch::is_of_memory(fact.kind)) {
        decoder_.add_memory(fact, out);
        continue;
      }
      if (!is_known) continue;
      decoder_.facts().push_back(fact);
      decoder_.facts().back().record = out.size();
    }
  } else {
    decoder_.arrive(event.arrival, out);
  }
}

void CacheLog::decode(const Chunk& chunk, TraceConsumer& consumer, std::vector<Record>& out) {
  std::size_t done = 0;
  const std::span<const std::uint32_t> entries = chunk.entries();
  for (const Event& event : chunk.events) {
    decode_entries(entries.subspan(done, event.before - done), consumer, out);
    done = event.before;
    decode_event(event, consumer, out);
  }
  decode_entries(entries.subspan(done), consumer, out);
}

void CacheLog::drain(TraceConsumer& consumer) {
  std::vector<Record> out;
  out.reserve(kBatchRecords);
  if (std::exchange(dropped_, false)) decoder_.lose(out);
  for (const ValueFact& fact : dropped_memory_) decoder_.add_memory(fact, out);
  dropped_memory_.clear();
  align_values();
  std::deque<Chunk> chunks;
  chunks.swap(chunks_);
  held_ = 0;
  for (const Chunk& chunk : chunks) {
    decode(chunk, consumer, out);
    if (&chunk == &chunks.back()) decoder_.pause(out);
    if (out.size() < kBatchRecords && &chunk != &chunks.back()) continue;
    hand_on(consumer, out);
  }
  decoder_.use_values(nullptr, 0);
}

}  // namespace backtrail::decoder
