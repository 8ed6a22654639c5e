// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/trace_archive.hpp"

#include <algorithm>
#include <utility>

#include "arch/base/log.hpp"
#include "decoder/corefile/value_facts.hpp"

namespace backtrail::decoder {
namespace {

std::string name_of(const TraceIndexEntry& entry) {
  const auto end = std::find(std::begin(entry.name), std::end(entry.name), '\0');
  return {std::begin(entry.name), end};
}

/// Sorts blocks by number and drops those that overlap an earlier one.
void put_in_order(TraceArchive::Thread& thread) {
  std::ranges::stable_sort(thread.facts, {}, &TraceBlock::first);
  std::stable_sort(thread.blocks.begin(), thread.blocks.end(),
                   [](const TraceBlock& a, const TraceBlock& b) { return a.first < b.first; });
  std::uint64_t next = 0;
  std::erase_if(thread.blocks, [&](const TraceBlock& block) {
    if (block.first < next || block.first > ~0ULL - block.records) return true;
    next = block.first + block.records;
    return false;
  });
  for (const TraceBlock& block : thread.blocks) thread.records += block.records;
  if (thread.end < next) {
    // The index does not state what was kept: the file is old or its index is damaged.
    thread.end = next;
    thread.promised = thread.records;
  }
}

/// Takes the number of lost and promised records from the index.
void take_losses(const TraceIndexEntry& entry, TraceArchive::Thread& thread) {
  const std::uint32_t count = entry.about_lost & kIndexCountMask;
  thread.lost_is_exact = (entry.about_lost & kIndexExact) != 0;
  thread.lost = thread.lost_is_exact
                    ? entry.lost - std::min<std::uint64_t>(entry.lost, count)
                    : entry.lost + std::min<std::uint64_t>(count, ~0ULL - entry.lost);
  if ((entry.about_lost & kIndexNumbered) != 0 && entry.records <= ~0ULL - entry.lost) {
    thread.promised = entry.records;
    thread.end = entry.lost + entry.records;
  }
}

/// Turns the oldest record into a kStart gap: what led to it is unknown.
void begin_trace(std::vector<Record>& records) {
  Record& oldest = records.front();
  if (oldest.kind == RecordKind::kGap && oldest.reason == GapReason::kStart) return;
  oldest = gap(GapReason::kStart, TraceeAddr{}, oldest.to);
}

/// Returns a gap for at least `lost` records that led to `to`; lost gaps may stand for more.
Record gap_of_lost(TraceeAddr to, std::uint64_t lost) {
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(lost, ~0U));
  return gap(GapReason::kOverflow, TraceeAddr{}, to, count, LossBound::kAtLeast);
}

/// Inserts a gap for the `lost` records that should precede `records`.
void begin_after_gap(std::vector<Record>& records, std::uint64_t lost) {
  const Record& first = records.front();
  const TraceeAddr to = first.kind == RecordKind::kGap ? first.to : first.from;
  records.insert(records.begin(), gap_of_lost(to, lost));
}

}  // namespace

TraceArchive::TraceArchive(const CoreFile& core) {
  if (core.newer_format()) return;
  for (const TraceIndexEntry& entry : core.trace_index()) {
    Thread& thread = threads_[entry.tid];
    take_losses(entry, thread);
    thread.name = name_of(entry);
  }
  BlockScan scan = scan_blocks(core.trace_segment());
  unreadable_bytes_ = scan.unreadable_bytes;
  for (const TraceBlock& block : scan.blocks) threads_[block.tid].blocks.push_back(block);
  for (const TraceBlock& block : scan.times) {
    // Times of a thread without records are useless.
    if (const auto thread = threads_.find(block.tid); thread != threads_.end()) {
      thread->second.times = block;
    }
  }
  for (const TraceBlock& block : scan.facts) {
    if (const auto thread = threads_.find(block.tid); thread != threads_.end()) {
      thread->second.facts.push_back(block);
    }
  }
  for (auto& [tid, thread] : threads_) put_in_order(thread);
  for (const CoreThread& alive : core.threads()) {
    const auto thread = threads_.find(alive.tid);
    if (thread != threads_.end()) thread->second.pc = alive.user.pc();
  }
  names_ = std::move(scan.names);
}

std::vector<CodeName> TraceArchive::names() const {
  std::vector<CodeName> out;
  for (const TraceBlock& block : names_) {
    if (const auto decoded = decode_names(block, out); !decoded) {
      log::decoder().debug("op=load_names {}", decoded.error().message());
    }
  }
  return out;
}

std::vector<ValueFact> TraceArchive::facts(std::uint32_t tid) const {
  return facts_from(tid, kFactsVersion);
}

std::vector<ValueFact> TraceArchive::code_facts(std::uint32_t tid) const {
  std::vector<ValueFact> out = facts_from(tid, kCodeVersion);
  std::erase_if(out, [](const ValueFact& fact) {
    return !arch::is_of_code(fact.kind) && !arch::is_of_memory(fact.kind);
  });
  return out;
}

/// Returns the facts in blocks of this version and newer ones.
std::vector<ValueFact> TraceArchive::facts_from(std::uint32_t tid,
                                                std::uint32_t oldest_version) const {
  std::vector<ValueFact> out;
  const Thread* thread = find(tid);
  if (thread == nullptr) return out;
  const auto forget_code = [&out] {
    std::erase_if(out, [](const ValueFact& fact) { return arch::is_of_code(fact.kind); });
  };
  for (const TraceBlock& block : thread->facts) {
    if (block.records < oldest_version) continue;
    if (const auto decoded = decode_facts(block, out); !decoded) {
      log::decoder().debug("tid={} op=load_values {}", tid, decoded.error().message());
      // Facts of code from before hold no longer.
      forget_code();
    }
  }
  // A block that ended some of them may be missing.
  if (unreadable_bytes_ != 0) forget_code();
  return out;
}

std::optional<TraceTimes> TraceArchive::times(std::uint32_t tid) const {
  const Thread* thread = find(tid);
  if (thread == nullptr || !thread->times || thread->blocks.empty()) return std::nullopt;
  auto decoded = decode_times(*thread->times);
  if (!decoded) {
    log::decoder().debug("tid={} op=load_times {}", tid, decoded.error().message());
    return std::nullopt;
  }
  return TraceTimes{std::move(*decoded), thread->end};
}

const TraceArchive::Thread* TraceArchive::find(std::uint32_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? nullptr : &found->second;
}

std::vector<Record> TraceArchive::load(std::uint32_t tid, std::uint64_t most) const {
  std::vector<Record> out;
  visit(tid, most, [&out](std::span<const Record> records) {
    out.insert(out.end(), records.begin(), records.end());
  });
  return out;
}

void TraceArchive::visit(std::uint32_t tid, std::uint64_t most,
                         const std::function<void(std::span<const Record>)>& take) const {
  visit_numbered(tid, most,
                 [&](std::span<const Record> records, std::uint64_t /*end*/) { take(records); });
}

void TraceArchive::visit_numbered(
    std::uint32_t tid, std::uint64_t most,
    const std::function<void(std::span<const Record>, std::uint64_t end)>& take,
    std::uint64_t before) const {
  const Thread* thread = find(tid);
  if (thread == nullptr) return;
  std::size_t end = thread->blocks.size();
  while (end > 0 && thread->blocks[end - 1].first >= before) --end;
  std::size_t begin = most == ~0ULL ? 0 : end;
  for (std::uint64_t count = 0; begin > 0 && count < most; --begin) {
    // Damaged blocks do not count.
    const TraceBlock& block = thread->blocks[begin - 1];
    if (count_block(block)) count += block.records;
  }
  std::vector<Record> records;
  std::uint64_t next = 0;
  bool oldest = true;
  for (std::size_t i = begin; i < end; ++i) {
    const TraceBlock& block = thread->blocks[i];
    records.clear();
    if (const auto decoded = decode_block(block, records); !decoded) {
      log::decoder().debug("tid={} op=load_trace {}", tid, decoded.error().message());
      continue;
    }
    if (records.size() > before - block.first) records.resize(before - block.first);
    if (records.empty()) continue;
    if (std::exchange(oldest, false)) {
      begin_trace(records);
    } else if (block.first != next) {
      begin_after_gap(records, block.first - next);
    }
    next = std::min(block.first + block.records, before);
    take(records, next);
  }
  const std::uint64_t last = std::min(thread->end, before);
  if (next >= last) return;
  const TraceeAddr to = last == thread->end ? thread->pc : TraceeAddr{};
  records.clear();
  if (oldest) records.push_back(gap(GapReason::kStart, TraceeAddr{}, to));
  records.push_back(gap_of_lost(to, last - next));
  take(records, std::max<std::uint64_t>(last, records.size()));
}

}  // namespace backtrail::decoder
