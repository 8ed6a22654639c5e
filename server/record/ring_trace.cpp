// SPDX-License-Identifier: Apache-2.0
#include "server/record/ring_trace.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "decoder/corefile/trace_blocks.hpp"
#include "decoder/corefile/value_facts.hpp"

namespace backtrail::server {
namespace {

using decoder::Record;

/// Consecutive records and the number of the first.
struct Piece {
  std::uint64_t first = 0;
  std::span<const Record> records;

  [[nodiscard]] std::uint64_t end() const { return first + records.size(); }
};

/// Returns the records saved for the thread's reports before number `begin`, oldest first, without
/// duplicates.
std::vector<Piece> pieces_before(const RingTrace& trace, std::uint64_t begin) {
  std::vector<Piece> out;
  if (trace.reports == nullptr) return out;
  std::uint64_t next = 0;
  const std::array reports{&trace.reports->first, &trace.reports->newest()};
  for (const ReportKeeper::Report* report : reports) {
    if (report->tid != trace.tid) continue;
    const std::uint64_t first = std::max(report->first(), next);
    const std::uint64_t end = std::min(report->position, begin);
    if (first >= end) continue;
    out.push_back({first, std::span{report->before}.subspan(first - report->first(), end - first)});
    next = end;
  }
  return out;
}

bool has_reports(const RingTrace& trace) {
  if (trace.reports == nullptr) return false;
  return trace.reports->first.tid == trace.tid || trace.reports->newest().tid == trace.tid;
}

/// Writes into the gap how many branches were omitted from a report.
void fill_in(Record& record, std::uint64_t left_out) {
  if (record.kind != decoder::RecordKind::kGap || record.reason != decoder::GapReason::kOverflow) {
    return;
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  record.payload = static_cast<std::uint32_t>(std::min(left_out, kMost));
  record.bound = decoder::LossBound::kAtLeast;
}

/// Returns the kept records as blocks, the newest first.
class NewestFirst {
 public:
  /// Numbers in the file are `shift` less than in the ring.
  NewestFirst(const RingTrace& trace, std::vector<Piece> pieces, std::uint64_t shift)
      : trace_{trace}, pieces_{std::move(pieces)}, shift_{shift}, end_{trace.ring->end()} {}

  bool operator()(tracee::CoreTraceBlock& out) {
    const std::uint64_t begin = trace_.ring->begin();
    if (end_ > begin) {
      out.first = end_ - std::min<std::uint64_t>(end_ - begin, decoder::kBlockRecords);
      copy_from_ring(out.first);
      end_ = out.first;
      pack(out, records_);
      return true;
    }
    while (!pieces_.empty() && pieces_.back().records.empty()) pieces_.pop_back();
    if (pieces_.empty()) return false;
    auto& rest = pieces_.back().records;
    const auto newest = rest.last(std::min<std::size_t>(rest.size(), decoder::kBlockRecords));
    rest = rest.first(rest.size() - newest.size());
    out.first = pieces_.back().end();
    pack(out, newest);
    return true;
  }

 private:
  void copy_from_ring(std::uint64_t first) {
    const std::uint64_t cut =
        trace_.left_out_of_report == 0 ? ~0ULL : trace_.reports->newest().position;
    records_.clear();
    for (std::uint64_t at = first; at < end_; ++at) {
      records_.push_back(trace_.ring->at(at));
      if (at == cut) fill_in(records_.back(), trace_.left_out_of_report);
    }
  }
  void pack(tracee::CoreTraceBlock& out, std::span<const Record> records) const {
    out.first -= shift_;
    out.records = records.size();
    out.others = 0;
    out.bytes.clear();
    decoder::append_block(static_cast<std::uint32_t>(trace_.tid), out.first, records, out.bytes);
  }

  RingTrace trace_;
  std::vector<Piece> pieces_;
  std::uint64_t shift_;
  std::uint64_t end_;
  std::vector<Record> records_;
};

}  // namespace

tracee::CoreTrace core_trace(const RingTrace& trace) {
  std::vector<Piece> pieces = pieces_before(trace, trace.ring->begin());
  tracee::CoreTrace out;
  out.tid = static_cast<std::uint32_t>(trace.tid);
  out.name = trace.name;
  // A lost record counts as a branch, so gaps among them are subtracted. The place of a report
  // is a number, which must stay.
  const std::uint64_t gaps = trace.ring->gaps_before();
  out.unnumbered = trace.lost - std::min(trace.lost, gaps);
  const std::uint64_t rest = gaps - std::min(trace.lost, gaps);
  const std::uint64_t shift = has_reports(trace) ? 0 : std::min(rest, trace.ring->begin());
  out.end = trace.ring->end() - shift;
  out.held = trace.ring->size();
  for (const Piece& piece : pieces) out.held += piece.records.size();
  if (trace.facts != nullptr) {
    const std::uint64_t oldest = pieces.empty() ? trace.ring->begin() : 0;
    decoder::append_facts(out.tid, trace.facts->since(oldest), shift, out.extra);
  }
  out.newest = NewestFirst{trace, std::move(pieces), shift};
  return out;
}

}  // namespace backtrail::server
