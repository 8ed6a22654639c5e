#include "decoder/cachelog/cache_log.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::decoder {
namespace {

constexpr std::size_t kChunkNumbers = 64UL * 1024;
constexpr std::size_t kBatchRecords = 16UL * 1024;

}  // namespace

void CacheLogDecoder::begin_at(TraceeAddr at, std::vector<Record>& out) {
  if (std::exchange(lost_, false)) {
    out.push_back(gap(GapReason::kOverflow, TraceeAddr{}, at));
    indirect_from_.reset();
    return;
  }
  if (!indirect_from_) return;
  out.push_back(branch(*indirect_from_, at));
  indirect_from_.reset();
}

void CacheLogDecoder::numbers(std::span<const std::uint32_t> numbers, std::vector<Record>& out) {
  for (const std::uint32_t number : numbers) {
    const LoggedExit* exit = exits_.find(number);
    if (exit == nullptr) {
      lose(out);
      continue;
    }
    begin_at(exit->block->head, out);
    for (std::size_t i = 0; i < exit->passed; ++i) {
      const auto& [from, to] = exit->block->branches[i];
      out.push_back(branch(from, to));
    }
    if (exit->kind == LoggedExitKind::kDirect) out.push_back(branch(exit->from, exit->to));
    if (exit->kind == LoggedExitKind::kIndirect) indirect_from_ = exit->from;
  }
}

void CacheLogDecoder::arrive(TraceeAddr at, std::vector<Record>& out) {
  begin_at(at, out);
}

void CacheLogDecoder::lose(std::vector<Record>&) {
  lost_ = true;
  indirect_from_.reset();
}

CacheLog::CacheLog(std::shared_ptr<const ExitTable> exits, std::uint64_t limit_bytes)
    : exits_{std::move(exits)},
      decoder_{*exits_},
      limit_numbers_{std::max<std::uint64_t>(limit_bytes / sizeof(std::uint32_t), kChunkNumbers)} {}

CacheLog::Chunk& CacheLog::open_chunk() {
  if (chunks_.empty() || chunks_.back().numbers.size() >= kChunkNumbers ||
      chunks_.back().events.size() >= kChunkNumbers) {
    std::optional<Chunk> spare = drop_old();
    chunks_.push_back(spare ? std::move(*spare) : Chunk{});
    chunks_.back().numbers.reserve(kChunkNumbers);
  }
  return chunks_.back();
}

std::optional<CacheLog::Chunk> CacheLog::drop_old() {
  std::optional<Chunk> spare;
  while (!chunks_.empty()) {
    Chunk& oldest = chunks_.front();
    const std::uint64_t size = oldest.numbers.size() + oldest.events.size();
    if (held_ < limit_numbers_ + size) break;
    held_ -= size;
    numbers_dropped_ += oldest.numbers.size();
    numbers_done_ += oldest.numbers.size();
    pins_.erase(pins_.begin(), pins_.lower_bound(numbers_done_));
    // Its memory is there already; fresh memory costs a page fault every 4 KiB.
    oldest.numbers.clear();
    oldest.events.clear();
    spare = std::move(oldest);
    chunks_.pop_front();
    dropped_ = true;
  }
  return spare;
}

void CacheLog::add_numbers(std::span<const std::uint32_t> numbers) {
  numbers_seen_ += numbers.size();
  while (!numbers.empty()) {
    Chunk& chunk = open_chunk();
    const std::size_t room = kChunkNumbers - chunk.numbers.size();
    const auto part = numbers.first(std::min(room, numbers.size()));
    chunk.numbers.insert(chunk.numbers.end(), part.begin(), part.end());
    held_ += part.size();
    numbers = numbers.subspan(part.size());
  }
}

void CacheLog::add_arrival(TraceeAddr at) {
  Chunk& chunk = open_chunk();
  chunk.events.push_back({chunk.numbers.size(), std::nullopt, at});
  ++held_;
}

void CacheLog::add_record(const Record& record) {
  if (record.kind == kPinRecord && record.payload != 0) {
    pins_.emplace(numbers_seen_ + record.payload, record);
    return;
  }
  Chunk& chunk = open_chunk();
  chunk.events.push_back({chunk.numbers.size(), record, TraceeAddr{}});
  ++held_;
}

void CacheLog::tell(const Record& pin, TraceConsumer& consumer, std::vector<Record>& before) {
  if (!before.empty()) consumer.consume(before);
  before.clear();
  consumer.consume_mark(pin_mark(pin, decoder_.arriving() ? 1 : 0));
}

void CacheLog::decode_numbers(std::span<const std::uint32_t> numbers, TraceConsumer& consumer,
                              std::vector<Record>& out) {
  while (!pins_.empty() && pins_.begin()->first <= numbers_done_ + numbers.size()) {
    const std::size_t before = pins_.begin()->first - numbers_done_;
    decoder_.numbers(numbers.first(before), out);
    numbers = numbers.subspan(before);
    numbers_done_ += before;
    tell(pins_.begin()->second, consumer, out);
    pins_.erase(pins_.begin());
  }
  decoder_.numbers(numbers, out);
  numbers_done_ += numbers.size();
}

void CacheLog::decode(const Chunk& chunk, TraceConsumer& consumer, std::vector<Record>& out) {
  std::size_t done = 0;
  const std::span<const std::uint32_t> numbers{chunk.numbers};
  for (const Event& event : chunk.events) {
    decode_numbers(numbers.subspan(done, event.before - done), consumer, out);
    done = event.before;
    if (event.record && event.record->kind == kPinRecord) {
      tell(*event.record, consumer, out);
    } else if (event.record) {
      // Whatever is recorded on its own begins where the numbers before it ended.
      decoder_.arrive(event.record->from, out);
      out.push_back(*event.record);
    } else {
      decoder_.arrive(event.arrival, out);
    }
  }
  decode_numbers(numbers.subspan(done), consumer, out);
}

void CacheLog::drain(TraceConsumer& consumer) {
  std::vector<Record> out;
  out.reserve(kBatchRecords);
  if (std::exchange(dropped_, false)) decoder_.lose(out);
  std::deque<Chunk> chunks;
  chunks.swap(chunks_);
  held_ = 0;
  for (const Chunk& chunk : chunks) {
    decode(chunk, consumer, out);
    if (out.size() < kBatchRecords && &chunk != &chunks.back()) continue;
    if (!out.empty()) consumer.consume(out);
    out.clear();
  }
}

}  // namespace backtrail::decoder
