// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/thread_report.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "arch/disassemble.hpp"
#include "decoder/report/call_values.hpp"
#include "decoder/report/off_marks.hpp"
#include "decoder/report/stack_values.hpp"
#include "decoder/report/stack_words.hpp"
#include "decoder/report/thread_stack.hpp"
#include "decoder/report/value_source.hpp"

namespace backtrail::decoder {
namespace {

/// Shortest off-CPU time that gets a row, in nanoseconds.
constexpr std::uint64_t kShortestOff = 1'000'000;

void add_times(const TraceTimes& times, const ThreadCalls& traced, std::vector<ReportRow>& rows) {
  const ThreadTimes& all = times.times();
  for (ReportRow& row : rows) {
    if (row.kind != RowKind::kCall || row.from_stack) continue;
    if (row.begin_position < traced.numbered_from()) continue;
    const TimeRange began = times.time_of(traced.first + row.begin_position);
    // The call began before the times that are known.
    if (began.earliest_ns <= all.since_ns) continue;
    row.began_before_end = {all.until_ns - began.latest_ns, all.until_ns - began.earliest_ns};
  }
}

}  // namespace

ThreadReporter::ThreadReporter(const CoreFile& core, const TraceArchive& archive, CodeReader& code,
                               Symbols& symbols, const ReportOptions& options, const EndFacts& end,
                               FailureScan& scan)
    : core_{core},
      archive_{archive},
      checks_{check_traces(archive)},
      code_{code},
      symbols_{symbols},
      options_{options},
      end_{end},
      scan_{scan},
      insns_{archive, code},
      places_{code, symbols},
      interruptions_{archive, insns_, symbols, places_, end, options} {}

FailureSign ThreadReporter::failure(std::uint32_t tid) const {
  const auto found = failures_.find(tid);
  return found == failures_.end() ? FailureSign::kNone : found->second;
}

void ThreadReporter::add_counts(std::uint32_t tid, ReportThread& out) const {
  const TraceArchive::Thread* trace = archive_.find(tid);
  if (trace == nullptr) return;
  const ThreadCheck& check = checks_.at(tid);
  out.name = trace->name;
  out.recorded = check.branches;
  out.lost = trace->lost;
  out.lost_is_exact = trace->lost_is_exact;
  out.lost_between = check.lost_between;
  out.lost_between_is_exact = check.lost_is_exact;
  out.missing = check.missing;
}

ReportThread ThreadReporter::living(const CoreThread& thread) {
  ReportThread out;
  out.tid = thread.tid;
  out.is_first = thread.tid == core_.threads().front().tid;
  out.died = out.is_first && thread.signal != 0;
  out.place = places_.place(thread.user.pc());
  out.instruction = places_.instruction(thread.user.pc());
  add_counts(thread.tid, out);
  const std::size_t wanted = out.is_first ? options_.calls : options_.other_calls;
  if (out.recorded != 0 || out.missing != 0) {
    add_calls(thread, wanted, out);
    return out;
  }
  ThreadCalls nothing;
  add_stack(thread, nothing, out);
  if (out.is_first) first_functions_ = functions_of(nothing, thread.user.pc());
  const std::vector<FoldedRow> rows = fold_calls(nothing.calls, nothing.gaps, {});
  out.rows = report_rows({nothing.calls, nothing.gaps, rows, {}}, symbols_, wanted);
  return out;
}

ReportThread ThreadReporter::ended(const CoreThread& thread, std::size_t calls) {
  ReportThread out;
  out.tid = thread.tid;
  out.ended = true;
  add_counts(thread.tid, out);
  add_calls(thread, calls, out);
  return out;
}

/// Returns how many branches to examine first if the options do not say.
std::uint64_t ThreadReporter::first_look(const ReportThread& thread) {
  // The calls before a sanitizer's report are examined separately.
  if (is_reported(end_, thread)) return kFirstLook;
  if (may_have_failed(end_, thread)) {
    const FailureSign least = thread.ended ? FailureSign::kName : FailureSign::kSure;
    return std::min(scan_.records_since(thread.tid, least), kLongestLook) + kFirstLook;
  }
  if (!thread.died) return kFirstLook;
  // A handler may have raised the fatal signal long after it began, or may have returned to the
  // faulting instruction.
  const TraceeAddr place = end_.was_sent() ? TraceeAddr{} : thread.place.address;
  const std::uint64_t since = records_since_signal(archive_, thread.tid, kLongestLook, place);
  return since == 0 ? kFirstLook : std::min(since + kFirstLook, kLongestLook);
}

void ThreadReporter::add_calls(const CoreThread& thread, std::size_t wanted, ReportThread& out) {
  const bool grows = options_.branches == 0;
  const std::optional<TraceTimes> times = archive_.times(thread.tid);
  if (times) out.times = off_sums(times->times());
  std::uint64_t look = grows ? first_look(out) : options_.branches;
  for (;; look *= kLookGrowth) {
    ThreadCalls traced = rebuild_calls(archive_, thread.tid, look, insns_, symbols_);
    std::vector<OffMark> offs;
    if (times) offs = off_marks(*times, traced.first, traced.records, kShortestOff);
    std::erase_if(offs, [&](const OffMark& off) { return off.position < traced.numbered_from(); });
    std::vector<FoldedRow> rows = fold_calls(traced.calls, traced.gaps, offs);
    const std::size_t calls = count_calls(rows, traced.calls);
    // Calls that libraries make while a thread ends would hide the thread's own.
    if (out.ended) {
      wanted = std::max(wanted, calls_with_own({traced.calls, traced.gaps, rows, offs}, symbols_,
                                               wanted, options_.calls));
    }
    const bool enough = calls > wanted || traced.records >= out.recorded || !grows;
    if (!enough && look < kLongestLook) continue;
    out.earlier_rows = calls - std::min(calls, wanted);
    add_found(thread, traced, offs, std::move(rows), wanted, out);
    if (!times) return;
    add_times(*times, traced, out.rows);
    if (out.interrupted && !is_reported(end_, out)) {
      add_times(*times, traced, out.interrupted->rows);
    }
    return;
  }
}

/// Fills in the report once enough calls, folded to `rows`, are known.
void ThreadReporter::add_found(const CoreThread& thread, ThreadCalls& traced,
                               std::span<const OffMark> offs, std::vector<FoldedRow> rows,
                               std::size_t wanted, ReportThread& out) {
  out.looked_at = traced.records;
  out.calls = traced.calls.size();
  const JoinedStack stack = out.ended ? JoinedStack{} : add_stack(thread, traced, out);
  if (stack.count != 0) rows = fold_calls(traced.calls, traced.gaps, offs);
  if (first_functions_.empty()) first_functions_ = functions_of(traced, thread.user.pc());
  const RowSource all{traced.calls, traced.gaps, rows, offs};
  out.rows = report_rows(all, symbols_, wanted);
  if (options_.values != nullptr && out.is_first) {
    out.last_calls = last_calls(traced, thread.tid, *options_.values, places_, symbols_);
  }
  failures_[out.tid] = interruptions_.find(traced, all, stack, wanted, out);
  add_arrival(thread, traced, out);
}

void ThreadReporter::add_arrival(const CoreThread& thread, const ThreadCalls& traced,
                                 ReportThread& out) {
  if (!traced.last || traced.last->kind != RecordKind::kBranch) return;
  if (traced.last->to != thread.user.pc()) return;
  out.arrived = true;
  out.from = places_.place(traced.last->from);
  out.from_instruction = places_.instruction(traced.last->from);
  CodeHistory* past = insns_.of(thread.tid);
  if (past == nullptr) return;
  // The branch's own record is the newest one: its block begins with the one before it.
  const std::uint64_t records = archive_.find(thread.tid)->end;
  const std::uint64_t block = records - std::min<std::uint64_t>(records, 2);
  if (const ExecutedInsn* insn = past->at(block, traced.last->from)) {
    out.from_instruction = arch::disassemble(code_.isa(), traced.last->from, insn->view());
  } else if (!executed_facts(past, insns_.at_end(), block, traced.last->from).known()) {
    out.from_instruction.clear();
  }
}

JoinedStack ThreadReporter::add_stack(const CoreThread& thread, ThreadCalls& traced,
                                      ReportThread& out) {
  const Stack stack = thread_stack(core_, code_, symbols_, thread, traced);
  JoinedStack joined = join_stack(stack, traced, insns_.at_end(), symbols_);
  out.stack_complete = joined.result == JoinedStack::Result::kComplete;
  if (!out.stack_complete) out.stack_problem = stack_problem(stack, joined, traced, places_);
  if (options_.values != nullptr && out.is_first) {
    const auto end = options_.values->at_end(thread.tid);
    out.stack = stack_values(stack, joined, end.get(), places_, symbols_);
  }
  return joined;
}

std::vector<SignatureFrame> ThreadReporter::functions_of(const ThreadCalls& traced, TraceeAddr pc) {
  std::vector<SignatureFrame> out;
  std::size_t at = kNoCall;
  for (std::size_t i = traced.calls.size(); i-- > 0 && at == kNoCall;) {
    if (traced.calls[i].end == CallEnd::kOpen) at = i;
  }
  const std::size_t handler = last_handler(traced.calls, pc);
  const bool is_in_handler = handler != kNoCall && traced.calls[handler].site != pc;
  if (is_in_handler) at = handler;
  places_.add_functions(is_in_handler ? traced.calls[handler].site : pc, out);
  for (; at != kNoCall && traced.calls[at].parent != kNoCall; at = traced.calls[at].parent) {
    const Call& call = traced.calls[at];
    if (is_in_handler && at == handler) continue;
    const bool in_caller = call.begin != CallBegin::kTailCalled && call.site != TraceeAddr{};
    places_.add_functions(in_caller ? call.site : traced.calls[call.parent].first, out);
  }
  return out;
}

}  // namespace backtrail::decoder
