// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/thread_calls.hpp"

#include <algorithm>
#include <span>

#include "decoder/calls/call_rebuilder.hpp"

namespace backtrail::decoder {

std::uint64_t first_record(const TraceArchive& archive, std::uint32_t tid, std::uint64_t records) {
  const TraceArchive::Thread* thread = archive.find(tid);
  if (thread == nullptr || thread->blocks.empty()) return 0;
  // Records are counted back from the end, with one gap for each run of missing blocks.
  const TraceBlock& newest = thread->blocks.back();
  std::uint64_t end = newest.first + newest.records;
  if (end < thread->end) ++end;
  return end - std::min(end, records);
}

ThreadCalls rebuild_calls(const TraceArchive& archive, std::uint32_t tid, std::uint64_t most,
                          PastCode& insns, CodeMap& code, std::uint64_t before) {
  ThreadCalls out;
  CallRebuilder rebuilder{insns.at_end(), code, insns.of(tid)};
  std::uint64_t next = ~0ULL;
  const auto take = [&](std::span<const Record> records, std::uint64_t end) {
    // The gap for missing blocks has no number of its own.
    const bool goes_on = next + records.size() == end;
    const std::uint64_t gaps = goes_on || out.runs.empty() ? 0 : 1;
    if (!goes_on) out.runs.push_back({out.records + gaps, end - (records.size() - gaps)});
    next = end;
    for (const Record& record : records) {
      ++out.records;
      if (record.kind == RecordKind::kGap && out.records != 1) {
        out.gaps.push_back({record, out.records});
      }
    }
    rebuilder.feed(records, end);
    if (!records.empty()) out.last = records.back();
  };
  archive.visit_numbered(tid, most, take, before);
  if (!out.runs.empty()) out.first = next - out.records;
  out.open = rebuilder.open();
  out.calls = rebuilder.finish();
  drop_lazy_binding(out.calls, code);
  return out;
}

std::optional<std::uint64_t> ThreadCalls::position_of(std::uint64_t number) const {
  for (std::size_t i = runs.size(); i-- > 0;) {
    if (number < runs[i].number) continue;
    const std::uint64_t position = runs[i].position + (number - runs[i].number) + 1;
    // The gap before the next run belongs to neither run.
    const std::uint64_t end = i + 1 < runs.size() ? runs[i + 1].position - 1 : records;
    return position <= end ? std::optional{position} : std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t records_since_signal(const TraceArchive& archive, std::uint32_t tid,
                                   std::uint64_t most, TraceeAddr place) {
  std::uint64_t records = 0;
  std::uint64_t oldest = 0;  // Number of records up to and including the oldest signal.
  archive.visit(tid, most, [&](std::span<const Record> some) {
    for (const Record& record : some) {
      ++records;
      if (oldest != 0 || record.kind != RecordKind::kAsync) continue;
      if (place == TraceeAddr{} || record.from == place) oldest = records;
    }
  });
  return oldest == 0 ? 0 : records - oldest + 1;
}

std::size_t last_handler(std::span<const Call> calls, TraceeAddr pc) {
  // For each call, the handler that it is, or that it replaced by a tail call.
  std::vector<std::size_t> handlers(calls.size(), kNoCall);
  std::vector<std::size_t> newest_within(calls.size(), kNoCall);
  std::size_t newest_outside = kNoCall;
  std::size_t returned = kNoCall;  // The newest handler that interrupted the instruction at the pc.
  std::uint64_t returned_at = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    std::size_t& newest = call.parent == kNoCall ? newest_outside : newest_within[call.parent];
    if (call.begin == CallBegin::kSignal) handlers[i] = i;
    if (call.begin == CallBegin::kTailCalled && newest != kNoCall &&
        calls[newest].end == CallEnd::kTailCalled) {
      handlers[i] = handlers[newest];
    }
    if (call.end == CallEnd::kOpen && handlers[i] != kNoCall) return handlers[i];
    if (handlers[i] != kNoCall && calls[handlers[i]].site == pc) {
      returned = handlers[i];
      returned_at = call.end_position;
    }
    newest = i;
  }
  // A call made after the handler returned led to the end instead.
  const bool is_last = returned != kNoCall && calls.back().begin_position <= returned_at;
  return is_last ? returned : kNoCall;
}

ThreadCalls calls_before(const ThreadCalls& all, std::size_t index) {
  const std::uint64_t position = all.calls[index].begin_position;
  ThreadCalls out;
  out.records = position;
  out.first = all.first;
  // Callers precede callees, so calls after `index` began later.
  out.calls.assign(all.calls.begin(), all.calls.begin() + static_cast<std::ptrdiff_t>(index));
  for (std::size_t i = all.calls[index].parent; i != kNoCall; i = out.calls[i].parent) {
    out.calls[i].end = CallEnd::kOpen;
    out.calls[i].end_position = position;
  }
  for (const GapMark& gap : all.gaps) {
    if (gap.position <= position) out.gaps.push_back(gap);
  }
  return out;
}

}  // namespace backtrail::decoder
