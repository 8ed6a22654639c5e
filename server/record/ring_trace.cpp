#include "server/record/ring_trace.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "decoder/corefile/trace_blocks.hpp"

namespace backtrail::server {
namespace {

using decoder::Record;

/// Records with the number of the first.
struct Piece {
  std::uint64_t first = 0;
  std::span<const Record> records;

  [[nodiscard]] std::uint64_t end() const { return first + records.size(); }
};

/// What was kept of the thread's reports and lies before `begin`, oldest first, nothing twice.
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

Result<void> write_piece(std::uint32_t tid, const Piece& piece,
                         const tracee::CoreTrace::Sink& sink) {
  std::vector<std::uint8_t> block;
  for (std::size_t at = 0; at < piece.records.size(); at += decoder::kBlockRecords) {
    block.clear();
    const std::size_t count =
        std::min<std::size_t>(decoder::kBlockRecords, piece.records.size() - at);
    decoder::append_block(tid, piece.first + at, piece.records.subspan(at, count), block);
    BT_CHECKED(sink(block));
  }
  return {};
}

/// The gap that stands for what was left out of a report says how much that is.
void fill_in(Record& record, std::uint64_t left_out) {
  if (record.kind != decoder::RecordKind::kGap || record.reason != decoder::GapReason::kOverflow) {
    return;
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  record.payload = static_cast<std::uint32_t>(std::min(left_out, kMost));
  record.bound = decoder::LossBound::kAtLeast;
}

Result<void> write_ring(const RingTrace& trace, const tracee::CoreTrace::Sink& sink) {
  const decoder::RecordRing& ring = *trace.ring;
  const std::uint64_t cut =
      trace.left_out_of_report == 0 ? ring.end() : trace.reports->newest().position;
  std::vector<Record> records;
  for (std::uint64_t at = ring.begin(); at < ring.end();) {
    records.clear();
    const std::uint64_t first = at;
    for (; at < ring.end() && records.size() < decoder::kBlockRecords; ++at) {
      records.push_back(ring.at(at));
      if (at == cut) fill_in(records.back(), trace.left_out_of_report);
    }
    BT_CHECKED(write_piece(static_cast<std::uint32_t>(trace.tid), {first, records}, sink));
  }
  return {};
}

}  // namespace

tracee::CoreTrace core_trace(const RingTrace& trace) {
  std::vector<Piece> pieces = pieces_before(trace, trace.ring->begin());
  std::uint64_t kept = 0;
  for (const Piece& piece : pieces) kept += piece.records.size();
  const std::uint64_t lost = trace.lost + trace.ring->overwritten();
  return {.tid = static_cast<std::uint32_t>(trace.tid),
          .name = trace.name,
          .records = trace.ring->size() + kept,
          .lost = lost - std::min(lost, kept),
          .write = [trace, pieces = std::move(pieces)](
                       const tracee::CoreTrace::Sink& sink) -> Result<void> {
            for (const Piece& piece : pieces) {
              BT_CHECKED(write_piece(static_cast<std::uint32_t>(trace.tid), piece, sink));
            }
            return write_ring(trace, sink);
          }};
}

}  // namespace backtrail::server
