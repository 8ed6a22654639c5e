// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/interruption.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "decoder/report/call_fold.hpp"

namespace backtrail::decoder {
namespace {

/// Most callers of a failure that are named.
constexpr std::size_t kMostCallers = 8;

/// Drops the leading rows that began before `position`.
std::vector<ReportRow> without_callers(std::vector<ReportRow> rows, std::uint64_t position) {
  const auto first = std::find_if(rows.begin(), rows.end(), [&](const ReportRow& row) {
    return row.kind == RowKind::kCall && row.begin_position >= position;
  });
  rows.erase(rows.begin(), first);
  std::uint32_t least = ~0U;
  for (const ReportRow& row : rows) least = std::min(least, row.level);
  for (ReportRow& row : rows) row.level -= least;
  return rows;
}

}  // namespace

bool may_have_failed(const EndFacts& end, const ReportThread& thread) {
  return !end.by_signal() && (thread.ended || thread.is_first);
}

bool is_reported(const EndFacts& end, const ReportThread& thread) {
  const auto& reported = end.reported();
  return reported && thread.tid == reported->tid && reported->number != 0;
}

FailureCall InterruptionFinder::failure_of(const ThreadCalls& traced, const ReportThread& thread) {
  if (thread.ended) return find_failure(traced.calls, symbols_, FailureSign::kName, false);
  if (thread.died) return find_failure(traced.calls, symbols_, FailureSign::kLeave, true);
  if (!may_have_failed(end_, thread)) return {};
  return find_failure(traced.calls, symbols_, FailureSign::kSure, false);
}

FailureSign InterruptionFinder::find(const ThreadCalls& traced, const RowSource& all,
                                     const JoinedStack& stack, std::size_t wanted,
                                     ReportThread& out) {
  if (is_reported(end_, out) && add_reported(traced, all, wanted, out)) return FailureSign::kReport;
  const FailureCall failure = failure_of(traced, out);
  std::size_t call = kNoCall;
  if (out.died || out.is_first) call = last_handler(traced.calls, out.place.address);
  if (call == kNoCall) call = failure.index;
  if (call == kNoCall) return failure.sign;
  add_interrupted(traced, call, out);
  out.interrupted->by_name = failure.index == call && failure.sign == FailureSign::kName;
  // There is nothing to show before a call that comes from the stack.
  if (stack.count != 0 && call >= stack.first && call <= stack.first + stack.count) {
    return failure.sign;
  }
  const Call& began = traced.calls[call];
  const bool shown = std::any_of(out.rows.begin(), out.rows.end(), [&](const ReportRow& row) {
    return row.kind == RowKind::kCall && !row.context && row.begin_position <= began.begin_position;
  });
  if (shown) return failure.sign;
  std::vector<OffMark> offs;
  std::copy_if(all.offs.begin(), all.offs.end(), std::back_inserter(offs),
               [&](const OffMark& off) { return off.position <= began.begin_position; });
  const std::size_t calls = add_rows_before(calls_before(traced, call), offs, wanted, out);
  show_rows_since(all, began.begin_position, calls, wanted, out);
  return failure.sign;
}

/// A sanitizer's report often began millions of branches before the end.
bool InterruptionFinder::add_reported(const ThreadCalls& traced, const RowSource& all,
                                      std::size_t wanted, ReportThread& out) {
  ThreadCalls older;
  std::size_t call = kNoCall;
  // Looks further back until the caller of the report's function is known.
  for (std::uint64_t look = kFirstLook; look <= kLongestLook; look *= kLookGrowth) {
    if (options_.branches != 0) look = std::max(look, options_.branches);
    older = rebuild_calls(archive_, out.tid, look, insns_, symbols_, end_.reported()->number);
    call = report_call(older.calls, symbols_, older.records);
    if (call != kNoCall && made_at(older.calls, call) != TraceeAddr{}) break;
  }
  if (call == kNoCall) return false;
  add_interrupted(older, call, out);
  const std::size_t calls = add_rows_before(calls_before(older, call), {}, wanted, out);
  const auto since = traced.position_of(end_.reported()->number);
  show_rows_since(all, since.value_or(0), since ? calls : 0, wanted, out);
  return true;
}

std::vector<ReportFrame> InterruptionFinder::callers_of(const ThreadCalls& traced,
                                                        std::size_t index) {
  std::vector<ReportFrame> out;
  for (std::size_t at = traced.calls[index].parent; at != kNoCall && out.size() < kMostCallers;
       at = traced.calls[at].parent) {
    const TraceeAddr site = made_at(traced.calls, at);
    if (site == TraceeAddr{}) break;
    const ReportPlace made = places_.place(site);
    out.insert(out.end(), made.frames.begin(), made.frames.end());
    if (out.back().function.empty()) out.back().function = made.module_place;
  }
  return out;
}

/// Fills in where the call at `index` was made.
void InterruptionFinder::add_interrupted(const ThreadCalls& traced, std::size_t index,
                                         ReportThread& out) {
  const Call& call = traced.calls[index];
  ReportInterrupted& before = out.interrupted.emplace();
  const TraceeAddr site = made_at(traced.calls, index);
  before.place = places_.place(site);
  before.instruction = places_.instruction(site);
  if (call.begin == CallBegin::kSignal) {
    before.returned = call.site == out.place.address;
  } else {
    before.by = call.function.known() ? symbols_.function_name(call.function.id)
                                      : symbols_.module_place(call.first);
    before.callers = callers_of(traced, index);
  }
}

/// Returns the number of folded calls before the interruption, shown or not.
std::size_t InterruptionFinder::add_rows_before(const ThreadCalls& older,
                                                const std::vector<OffMark>& offs,
                                                std::size_t wanted, ReportThread& out) {
  const std::vector<FoldedRow> rows = fold_calls(older.calls, older.gaps, offs);
  const std::size_t calls = count_calls(rows, older.calls);
  out.interrupted->earlier_rows = calls - std::min(calls, wanted);
  out.interrupted->rows = report_rows({older.calls, older.gaps, rows, offs}, symbols_, wanted);
  return calls;
}

/// Shows fewer calls if those that led to the failure are shown before them.
void InterruptionFinder::show_rows_since(const RowSource& all, std::uint64_t position,
                                         std::size_t before, std::size_t wanted,
                                         ReportThread& out) {
  const std::size_t fewer = std::min(wanted, options_.other_calls);
  const std::size_t count = count_calls(all.rows, all.calls);
  out.rows = without_callers(report_rows(all, symbols_, fewer), position);
  out.earlier_rows = count - std::min(count, before + fewer);
}

}  // namespace backtrail::decoder
