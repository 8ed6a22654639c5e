// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/thread_log.hpp"

#include <algorithm>
#include <utility>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/os/page_population.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;
using translate::Slot;

/// Limit on undecoded entries if every record is kept. CacheLog bounds its entries, so they are
/// handed on before that.
constexpr std::size_t kMostUndecoded = 64UL * 1024;
/// After this many full logs a thread is expected to fill more.
constexpr std::uint64_t kBusyAt = 4;
/// Part of the log that is decoded at once if every record is kept. The thread logs more meanwhile,
/// and stops of other threads must not wait long.
constexpr std::uint64_t kDecodedAtOnce = 256ULL << 10;

}  // namespace

void ThreadLog::open(CacheSpace& space, std::size_t slot, ThreadMemory& memory) {
  space_ = &space;
  slot_ = slot;
  memory_ = &memory;
  constexpr std::uint64_t kNoLimit = ~0ULL;
  log_ = make_log(options_.keeps_all ? kNoLimit : options_.history_bytes);
  if (space.code().records_values()) memory.write(Slot::kValues, 0);
  if (options_.keeps_all) {
    LogRange log = memory.log();
    const std::uint64_t unused = log.bytes() - std::min(log.bytes(), kDecodedAtOnce);
    log.host += unused;
    log.begin = log.begin + unused;
    use(log);
  }
  begin();
}

std::unique_ptr<decoder::CacheLog> ThreadLog::make_log(std::uint64_t history_bytes) const {
  auto log =
      std::make_unique<decoder::CacheLog>(space_->code().exits(), history_bytes, populate_pages);
  if (space_->code().records_values()) log->use_values(memory_->values());
  return log;
}

void ThreadLog::close() {
  seen_before_ = entries_seen();
  log_.reset();
  busy_log_.reset();
  space_ = nullptr;
  memory_ = nullptr;
}

void ThreadLog::begin() {
  taken_ = 0;
  is_blank_ = streams_;
  if (is_blank_) memory_->blank_log();
}

void ThreadLog::take(TraceeAddr log) {
  const auto all = memory_->entries(log);
  take_entries(all.subspan(std::min(taken_, all.size())));
  if (busy_log_) {
    const bool begins_again = busy_log_->use_up(log);
    use(busy_log_->rest());
    if (begins_again) log_->forget(memory_->entries(memory_->log_end()));
  }
  begin();
}

void ThreadLog::take_entries(std::span<const std::uint32_t> entries) {
  SourceStatistics* const sums = options_.statistics;
  const StatisticsTimer timer{sums != nullptr ? &sums->reading_logs : nullptr};
  if (sums != nullptr) space_->code().exits()->count(entries, counts_);
  if (!streams_) {
    if (busy_log_) {
      log_->hold_entries(entries);
    } else {
      log_->add_entries(entries);
    }
    bound_undecoded();
    return;
  }
  while (!entries.empty()) {
    const auto part = entries.first(std::min(entries.size(), kMostUndecoded));
    log_->add_entries(part);
    drain();
    entries = entries.subspan(part.size());
  }
}

void ThreadLog::bound_undecoded() {
  if (options_.keeps_all && log_->waiting() * sizeof(std::uint32_t) >= kLogBytes) drain();
}

std::size_t ThreadLog::new_entries() const {
  if (!is_blank_) return 0;
  // The newest entry is not final: at a stop before the step of the log pointer that follows it,
  // the thread is still before the exit.
  const std::size_t written = memory_->written(taken_).size();
  return written > taken_ + 1 ? written - taken_ - 1 : 0;
}

void ThreadLog::take_written(std::size_t count) {
  take_entries(memory_->written(taken_ + count).subspan(taken_, count));
  taken_ += count;
}

void ThreadLog::renew(Thread& thread) {
  ++full_logs_;
  if (busy_log_) {
    busy_log_->commit(thread);
  } else if (!options_.keeps_all && (full_logs_ % kBusyAt == 0 || space_->memory().areas() == 0)) {
    use_busy_log(thread);
  }
}

void ThreadLog::use_busy_log(Thread& thread) {
  auto busy = BusyLog::begin(*space_, thread, options_.history_bytes);
  if (!busy) {
    log::ptrace().debug("tid={}: {}", thread.tid(), busy.error().message());
    return;
  }
  busy_log_ = std::move(*busy);
  use(busy_log_->rest());
  begin();
}

void ThreadLog::use(const LogRange& log) {
  space_->memory().set_log(slot_, log);
  memory_->set_log(log);
}

void ThreadLog::add_record(const decoder::Record& record) {
  log_->add_record(record);
  bound_undecoded();
}

void ThreadLog::count_values(std::size_t values) {
  // As translated code does: an index has 16 bits.
  memory_->write(Slot::kValues, (memory_->read(Slot::kValues) + values) % translate::kRingValues);
}

void ThreadLog::end_values(std::size_t left) {
  log_->end_values(memory_->read(Slot::kValues), left);
}

void ThreadLog::add_passed(const UnfinishedBlock& block) {
  const auto points = space_->code().exits()->values().of_block(block.number);
  const std::size_t values = std::min(block.values, points.size());
  std::vector<decoder::ValueFact> facts;
  std::size_t next = 0;
  const auto add_facts = [&](std::size_t branches) {
    const bool is_last = branches == block.passed;
    log_->add_executed(block.number, branches, is_last ? std::optional{block.pc} : std::nullopt);
    facts.clear();
    for (; next < values && points[next].passed == branches; ++next) {
      const auto value = log_->values()->at(log_->values()->end() - block.values + next);
      if (!value) continue;
      facts.push_back(
          {.pc = block.logged.at(points[next].pc), .value = *value, .kind = points[next].kind});
    }
    log_->add_facts(facts);
  };
  log_->add_arrival(block.logged.start);
  add_facts(0);
  for (std::size_t i = 0; i < block.passed; ++i) {
    const auto [from, to] = block.logged.branch(i);
    log_->add_record(decoder::branch(from, to));
    ++counts_.branches;
    add_facts(i + 1);
  }
  counts_.values += values;
}

void ThreadLog::drain() {
  if (log_) log_->drain(sink_);
}

std::uint64_t ThreadLog::keep_newest(std::uint64_t branches) {
  return log_ ? log_->keep_newest(branches) : 0;
}

void ThreadLog::clear() {
  if (log_) log_->clear();
}

std::unique_ptr<decoder::CacheLog> ThreadLog::release() {
  if (!log_ || streams_) return nullptr;
  seen_before_ = entries_seen();
  return std::exchange(log_, make_log(0));
}

void ThreadLog::stream(bool is_stopped) {
  streams_ = true;
  if (log_ && is_stopped) begin();
}

std::uint64_t ThreadLog::entries_seen() const {
  return seen_before_ + (log_ ? log_->numbers_seen() : 0);
}

}  // namespace backtrail::tracee::cache
