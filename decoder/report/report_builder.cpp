#include "decoder/report/report_builder.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "arch/disassemble.hpp"
#include "arch/insn.hpp"
#include "decoder/corefile/ended_threads.hpp"
#include "decoder/corefile/trace_check.hpp"
#include "decoder/report/caught_signals.hpp"
#include "decoder/report/clean_text.hpp"
#include "decoder/report/crash_signature.hpp"
#include "decoder/report/failure_calls.hpp"
#include "decoder/report/report_rows.hpp"
#include "decoder/report/signal_text.hpp"
#include "decoder/report/stack_join.hpp"
#include "decoder/report/thread_calls.hpp"
#include "decoder/report/thread_stack.hpp"

namespace backtrail::decoder {
namespace {

/// Where looking begins, and ends when nobody says how far: folded calls can be very many.
constexpr std::uint64_t kFirstLook = 1U << 16U;
constexpr std::uint64_t kLongestLook = 1U << 22U;
constexpr std::uint64_t kLookGrowth = 8;
/// How far back failures are looked for: in a thread, and in all together.
constexpr std::uint64_t kFailureLook = 1U << 20U;
constexpr std::uint64_t kFailureLooks = 1U << 24U;
/// Threads that had ended, of which a report tells.
constexpr std::size_t kMostEnded = 16;
/// Callers of a failure that are named.
constexpr std::size_t kMostCallers = 8;
/// Times off the CPU that are worth a line.
constexpr std::uint64_t kShortestOff = 1'000'000;

/// Without what began before `position`, in front.
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

class Builder {
 public:
  Builder(const CoreFile& core, const TraceArchive& archive, CodeReader& code, Symbols& symbols,
          const ReportOptions& options)
      : core_{core},
        archive_{archive},
        checks_{check_traces(archive)},
        code_{code},
        symbols_{symbols},
        options_{options},
        insns_{code} {}

  Report build() {
    Report report;
    report.program = core_.process().name;
    report.pid = core_.process().pid;
    report.command = core_.process().arguments;
    if (const auto found = core_.about().find("command"); found != core_.about().end()) {
      report.command = found->second;
    }
    if (const auto found = core_.about().find("run"); found != core_.about().end()) {
      report.run = found->second;
    }
    take_signal(report);
    take_report();
    report.ending = ending();
    add_notes(report);
    for (const CoreThread& thread : core_.threads()) {
      // Which thread is the cause is known, or else all are looked at.
      const bool knows = core_.threads().front().signal != 0;
      if (options_.only_dead && knows && !report.threads.empty()) {
        report.left_out = core_.threads().size() - 1;
        break;
      }
      report.threads.push_back(build_thread(thread, &thread == &core_.threads().front()));
    }
    const std::vector<CoreThread> ended =
        report.left_out == 0 ? shown_ended(report) : std::vector<CoreThread>{};
    for (const CoreThread& thread : ended) {
      report.threads.push_back(build_ended(thread, options_.other_calls));
    }
    put_failed_first(report);
    if (report.threads.front().ended) {
      const std::uint32_t tid = report.threads.front().tid;
      const auto first = std::find_if(ended.begin(), ended.end(),
                                      [=](const CoreThread& thread) { return thread.tid == tid; });
      report.threads.front() = build_ended(*first, options_.calls);
    }
    if (options_.only_dead) {
      report.left_out += report.threads.size() - 1;
      report.threads.resize(1);
    }
    take_failure_frames(report.threads.front());
    add_first_signal(report);
    report.signature = crash_signature(
        signature_frames_, report.first_signal ? report.first_signal->name : end_word());
    return report;
  }

 private:
  void take_signal(Report& report) {
    const CoreThread& died = core_.threads().front();
    report.signal = died.signal;
    report.signal_name = signal_name(died.signal);
    std::span<const std::uint8_t> siginfo;
    if (died.siginfo) siginfo = *died.siginfo;
    const SignalText text =
        signal_text(died.signal, siginfo, core_.isa(), died.user.pc(), died.user.sp());
    report.cause = text.words;
    report.has_address = text.address.has_value();
    report.address = text.address.value_or(TraceeAddr{});
    sent_ = text.sent;
  }

  /// What the handler was called for that the thread died in: it may have raised another signal.
  void add_first_signal(Report& report) const {
    const ReportThread& died = report.threads.front();
    if (!died.died || !died.interrupted) return;
    // Where what it interrupted faults again, the last signal says why itself.
    if (died.interrupted->returned && !sent_) return;
    const auto facts = core_.about().find("caught");
    if (facts == core_.about().end()) return;
    const TraceeAddr place = died.interrupted->place.address;
    for (const CaughtSignal& caught : parse_caught(facts->second, core_.isa())) {
      if (caught.pc != place) continue;
      const SignalText text =
          signal_text(caught.signal, caught.info, core_.isa(), caught.pc, TraceeAddr{});
      report.first_signal =
          ReportSignal{caught.signal, signal_name(caught.signal), text.words, text.address};
    }
  }

  void take_report() {
    const std::string tid = fact("report-thread");
    const std::string number = fact("report-record");
    if (tid.empty() || number.empty()) return;
    reported_ = {static_cast<std::uint32_t>(std::strtoul(tid.c_str(), nullptr, 10)),
                 std::strtoull(number.c_str(), nullptr, 10)};
  }

  [[nodiscard]] std::string fact(const char* name) const {
    const auto found = core_.about().find(name);
    return found == core_.about().end() ? std::string{} : printable(found->second);
  }

  /// What the recorder says, where it was not simply a signal.
  [[nodiscard]] std::string ending() const {
    const std::string reason = fact("reason");
    if (reason == "exit") return "exited with status " + fact("exit-status");
    if (reason == "sanitizer") {
      return "ended after a sanitizer's report, with status " + fact("exit-status");
    }
    if (reason == "leak-check") {
      return "failed after its check for leaks, before which this was saved";
    }
    if (reason == "timeout") return "was stopped because its time was up";
    if (reason == "terminated") {
      return fmt::format("was told to end: {} was sent to the recorder",
                         signal_name(core_.threads().front().signal));
    }
    return {};
  }

  /// How it ended, in a word or two.
  [[nodiscard]] std::string end_word() const {
    std::string reason = fact("reason");
    if (reason == "exit") return "exit " + fact("exit-status");
    if (!reason.empty() && reason != "signal") return reason;
    return signal_name(core_.threads().front().signal);
  }

  /// Of a thread that failed those count that it was in then.
  void take_failure_frames(const ReportThread& thread) {
    if (!thread.interrupted || thread.interrupted->by.empty()) return;
    signature_frames_.clear();
    const auto add = [&](const ReportFrame& frame) {
      if (!frame.function.empty()) signature_frames_.push_back({frame.function, {}});
    };
    const ReportInterrupted& failure = *thread.interrupted;
    std::for_each(failure.place.frames.begin(), failure.place.frames.end(), add);
    std::for_each(failure.callers.begin(), failure.callers.end(), add);
  }

  /// The functions that the thread is in, innermost first; where a handler runs, those that it
  /// interrupted.
  std::vector<SignatureFrame> functions_of(const ThreadCalls& traced, TraceeAddr pc) {
    std::vector<SignatureFrame> out;
    std::size_t at = kNoCall;
    for (std::size_t i = traced.calls.size(); i-- > 0 && at == kNoCall;) {
      if (traced.calls[i].end == CallEnd::kOpen) at = i;
    }
    const std::size_t handler = last_handler(traced.calls, pc);
    const bool is_in_handler = handler != kNoCall && traced.calls[handler].site != pc;
    if (is_in_handler) at = handler;
    add_functions(is_in_handler ? traced.calls[handler].site : pc, out);
    for (; at != kNoCall && traced.calls[at].parent != kNoCall; at = traced.calls[at].parent) {
      const Call& call = traced.calls[at];
      if (is_in_handler && at == handler) continue;
      const bool in_caller = call.begin != CallBegin::kTailCalled && call.site != TraceeAddr{};
      add_functions(in_caller ? call.site : traced.calls[call.parent].first, out);
    }
    return out;
  }
  void add_functions(TraceeAddr address, std::vector<SignatureFrame>& out) {
    const std::string module = symbols_.module_place(address);
    for (const CodeFrame& frame : symbols_.frames_at(address)) {
      const std::string& name = symbols_.text(frame.name);
      out.push_back(
          {name.empty() ? function_at(address) : name, module.substr(0, module.find('+'))});
    }
  }

  void add_notes(Report& report) const {
    if (core_.truncated()) report.notes.emplace_back("the file is cut off; its end is missing");
    if (core_.newer_format()) {
      report.notes.emplace_back(
          "the traces are in a format that is newer than this program; they were not read");
    } else if (archive_.threads().empty()) {
      report.notes.emplace_back("the file holds no trace");
    }
    add_report_notes(report);
    if (archive_.unreadable_bytes() != 0) {
      report.notes.push_back(fmt::format("{} bytes of the traces are damaged and were passed over",
                                         archive_.unreadable_bytes()));
    }
  }

  void add_report_notes(Report& report) const {
    const std::string count = fact("reports");
    if (!reported_ || count.empty()) return;
    if (count != "1") {
      report.notes.push_back(fmt::format("{} sanitizer reports began; this tells of number {}",
                                         count, fact("report")));
    }
    if (const std::string left_out = fact("report-left-out"); !left_out.empty()) {
      report.notes.push_back(
          fmt::format("{} branches of the sanitizer's own report were left out", left_out));
    }
  }

  ReportPlace place(TraceeAddr address) {
    ReportPlace out{address, symbols_.module_place(address), {}};
    for (const CodeFrame& frame : symbols_.frames_at(address)) {
      out.frames.push_back({symbols_.text(frame.name), symbols_.text(frame.line.file),
                            frame.line.line, frame.inlined});
    }
    return out;
  }

  std::string instruction(TraceeAddr address) {
    std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
    const std::size_t count = code_.read_code(address, bytes);
    return arch::disassemble(core_.isa(), address, std::span{bytes}.first(count));
  }

  ReportThread build_thread(const CoreThread& thread, bool died) {
    ReportThread out;
    out.tid = thread.tid;
    out.died = died && thread.signal != 0;
    out.place = place(thread.user.pc());
    out.instruction = instruction(thread.user.pc());
    if (const TraceArchive::Thread* trace = archive_.find(thread.tid)) {
      out.name = trace->name;
      const ThreadCheck& check = checks_.at(thread.tid);
      out.recorded = check.branches;
      out.lost = trace->lost;
      out.lost_is_exact = trace->lost_is_exact;
      out.lost_between = check.lost_between;
      out.lost_between_is_exact = check.lost_is_exact;
      out.missing = check.missing;
    }
    const std::size_t wanted = died ? options_.calls : options_.other_calls;
    if (out.recorded != 0 || out.missing != 0) {
      add_calls(thread, wanted, out);
    } else {
      ThreadCalls nothing;
      (void)add_stack(thread, nothing, out);
      if (died) signature_frames_ = functions_of(nothing, thread.user.pc());
      out.rows = rows_of(nothing, {}, wanted);
    }
    return out;
  }

  std::vector<ReportRow> rows_of(const ThreadCalls& traced, std::span<const OffMark> offs,
                                 std::size_t wanted) {
    const std::vector<FoldedRow> rows = fold_calls(traced.calls, traced.gaps, offs);
    return report_rows({traced.calls, traced.gaps, rows, offs}, symbols_, wanted);
  }

  JoinedStack add_stack(const CoreThread& thread, ThreadCalls& traced, ReportThread& out) {
    const Stack stack = thread_stack(core_, code_, symbols_, thread, traced);
    JoinedStack joined = join_stack(stack, traced, insns_, symbols_);
    out.stack_complete = joined.result == JoinedStack::Result::kComplete;
    if (!out.stack_complete) out.stack_problem = stack_problem(stack, joined, traced);
    return joined;
  }

  std::string stack_problem(const Stack& stack, const JoinedStack& joined,
                            const ThreadCalls& traced) {
    if (joined.result == JoinedStack::Result::kDisagrees) {
      const Call& call = traced.calls[joined.call];
      const std::string name = function_at(call.first);
      if (joined.by_call == TraceeAddr{}) {
        return fmt::format("the thread is in {}, and its last branches were in {}",
                           function_at(stack.frames.front().place()), name);
      }
      return fmt::format(
          "the stack does not agree with the calls: {} was called from {}, and the stack has {} "
          "there; no callers were taken from it",
          name, function_at(joined.by_call - 1),
          joined.by_stack == TraceeAddr{} ? "nothing"
                                          : fmt::format("{:#x}", joined.by_stack.value()));
    }
    if (joined.result == JoinedStack::Result::kNoReturn) {
      return fmt::format(
          "the stack cannot be followed beyond {}: it would return to {:#x}, where nothing was "
          "called",
          function_at(joined.outermost), joined.by_stack.value());
    }
    const std::string last = function_at(stack.frames.back().place());
    switch (stack.end) {
      case StackEnd::kNoUnwindInfo:
        return fmt::format(
            "the stack cannot be followed beyond {}: there is no unwind information for it", last);
      case StackEnd::kDamaged:
        return fmt::format("the stack cannot be followed beyond {}: it is damaged there", last);
      case StackEnd::kTooDeep:
        return fmt::format("the stack is more than {} calls deep; the outermost are not known",
                           kMostStackFrames - 1);
      default:
        return fmt::format("the stack cannot be followed beyond {}: no return address stands there",
                           last);
    }
  }

  std::string function_at(TraceeAddr address) {
    std::string name = symbols_.function_name(symbols_.at(address).id);
    if (name.empty()) name = symbols_.module_place(address);
    return name.empty() ? fmt::format("{:#x}", address.value()) : name;
  }

  [[nodiscard]] bool is_reported(const ReportThread& thread) const {
    return reported_ && thread.tid == reported_->tid && reported_->number != 0;
  }

  /// Not more than a person reads: those that failed, and the newest.
  std::vector<CoreThread> shown_ended(Report& report) {
    std::vector<CoreThread> out = ended_threads(core_, archive_);
    if (out.size() <= kMostEnded) return out;
    std::map<std::uint32_t, unsigned> weights;
    for (const CoreThread& thread : out) weights[thread.tid] = failure_weight(thread.tid);
    std::stable_sort(out.begin(), out.end(), [&](const CoreThread& a, const CoreThread& b) {
      return weights.at(a.tid) > weights.at(b.tid);
    });
    report.notes.push_back(
        fmt::format("{} more threads that had ended are in the file: backtrail info lists them",
                    out.size() - kMostEnded));
    out.resize(kMostEnded);
    return out;
  }

  std::uint64_t since_failure(std::uint32_t tid) {
    const std::uint64_t most = std::min(kFailureLook, scan_left_);
    if (most == 0) return 0;
    scan_left_ -= std::min(most, archive_.find(tid)->records);
    return records_since_failure(archive_, tid, most, symbols_);
  }

  unsigned failure_weight(std::uint32_t tid) {
    const std::uint64_t most = std::min(kFailureLook, scan_left_);
    if (most == 0) return 0;
    scan_left_ -= std::min(most, archive_.find(tid)->records);
    return decoder::failure_weight(archive_, tid, most, symbols_);
  }

  ReportThread build_ended(const CoreThread& thread, std::size_t calls) {
    ReportThread out;
    const TraceArchive::Thread& trace = *archive_.find(thread.tid);
    out.tid = thread.tid;
    out.ended = true;
    out.name = trace.name;
    out.recorded = trace.records;
    out.lost = trace.lost;
    add_calls(thread, calls, out);
    return out;
  }

  /// Whoever died of a signal is the cause. Where the process only ended, the thread that failed
  /// may be another than the one that ended it.
  void put_failed_first(Report& report) const {
    std::vector<ReportThread>& threads = report.threads;
    if (threads.front().died) return;
    const auto rank = [&](const ReportThread& thread) {
      const auto found = failures_.find(thread.tid);
      return found == failures_.end() ? FailureSign::kNone : found->second;
    };
    // The first of the strongest: the one that ended the process, then the newest that had ended.
    const auto worst =
        std::max_element(threads.begin(), threads.end(),
                         [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    if (rank(*worst) != FailureSign::kNone) std::rotate(threads.begin(), worst, worst + 1);
  }

  /// How many branches are looked at first, where nobody says.
  std::uint64_t first_look(const ReportThread& thread) {
    // What came before the report is looked at on its own.
    if (is_reported(thread)) return kFirstLook;
    if (may_have_failed(thread)) {
      return std::min(since_failure(thread.tid), kLongestLook) + kFirstLook;
    }
    if (!thread.died) return kFirstLook;
    // A handler may have raised it again, long after what it was called for, or have returned to
    // what faults.
    const TraceeAddr place = sent_ ? TraceeAddr{} : thread.place.address;
    const std::uint64_t since = records_since_signal(archive_, thread.tid, kLongestLook, place);
    return since == 0 ? kFirstLook : std::min(since + kFirstLook, kLongestLook);
  }

  void add_calls(const CoreThread& thread, std::size_t wanted, ReportThread& out) {
    const bool grows = options_.branches == 0;
    const std::optional<TraceTimes> times = archive_.times(thread.tid);
    if (times) out.times = off_sums(times->times());
    std::uint64_t look = grows ? first_look(out) : options_.branches;
    for (;; look *= kLookGrowth) {
      ThreadCalls traced = rebuild_calls(archive_, thread.tid, look, insns_, symbols_);
      std::vector<OffMark> offs;
      if (times) offs = off_marks(*times, traced.first, traced.records, kShortestOff);
      std::erase_if(offs,
                    [&](const OffMark& off) { return off.position < traced.numbered_from(); });
      std::vector<FoldedRow> rows = fold_calls(traced.calls, traced.gaps, offs);
      const std::size_t calls = count_calls(rows, traced.calls);
      // What libraries do when a thread ends would hide what it did itself.
      if (out.ended) {
        wanted = std::max(wanted, calls_with_own({traced.calls, traced.gaps, rows, offs}, symbols_,
                                                 wanted, options_.calls));
      }
      const bool enough = calls > wanted || traced.records >= out.recorded || !grows;
      if (!enough && look < kLongestLook) continue;
      out.looked_at = traced.records;
      out.calls = traced.calls.size();
      out.earlier_rows = calls - std::min(calls, wanted);
      const JoinedStack stack = out.ended ? JoinedStack{} : add_stack(thread, traced, out);
      if (signature_frames_.empty()) signature_frames_ = functions_of(traced, thread.user.pc());
      if (stack.count != 0) rows = fold_calls(traced.calls, traced.gaps, offs);
      const RowSource source{traced.calls, traced.gaps, rows, offs};
      out.rows = report_rows(source, symbols_, wanted);
      find_interruption(traced, source, stack, wanted, out);
      if (times) add_times(*times, traced, out.rows);
      if (times && out.interrupted && !is_reported(out)) {
        add_times(*times, traced, out.interrupted->rows);
      }
      if (traced.last && traced.last->kind == RecordKind::kBranch &&
          traced.last->to == thread.user.pc()) {
        out.arrived = true;
        out.from = place(traced.last->from);
        out.from_instruction = instruction(traced.last->from);
      }
      return;
    }
  }

  [[nodiscard]] bool is_first(const ReportThread& thread) const {
    return thread.tid == core_.threads().front().tid;
  }
  /// No signal ended the process, which may have failed by what this thread had done before.
  [[nodiscard]] bool may_have_failed(const ReportThread& thread) const {
    return core_.threads().front().signal == 0 && (thread.ended || is_first(thread));
  }

  FailureCall failure_of(const ThreadCalls& traced, const ReportThread& thread) {
    if (thread.ended) return find_failure(traced.calls, symbols_, FailureSign::kName, false);
    if (thread.died) return find_failure(traced.calls, symbols_, FailureSign::kLeave, true);
    if (!may_have_failed(thread)) return {};
    return find_failure(traced.calls, symbols_, FailureSign::kSure, false);
  }

  /// Where a sanitizer's report began, or what a handler interrupted in or behind which the thread
  /// died, or where the thread failed.
  void find_interruption(const ThreadCalls& traced, const RowSource& all, const JoinedStack& stack,
                         std::size_t wanted, ReportThread& out) {
    if (is_reported(out) && add_reported(traced, all, wanted, out)) return;
    const FailureCall failure = failure_of(traced, out);
    failures_[out.tid] = failure.sign;
    std::size_t call = kNoCall;
    if (out.died || is_first(out)) call = last_handler(traced.calls, out.place.address);
    // What only may be a failure tells which thread to look at, not where.
    if (call == kNoCall && failure.sign >= FailureSign::kLeave) call = failure.index;
    if (call == kNoCall) return;
    add_interrupted(traced, call, out);
    // One that began before the calls that are known: there is nothing to show before it.
    if (stack.count != 0 && call >= stack.first && call <= stack.first + stack.count) return;
    const Call& began = traced.calls[call];
    const bool shown = std::any_of(out.rows.begin(), out.rows.end(), [&](const ReportRow& row) {
      return row.kind == RowKind::kCall && !row.context &&
             row.begin_position <= began.begin_position;
    });
    if (shown) return;
    std::vector<OffMark> offs;
    std::copy_if(all.offs.begin(), all.offs.end(), std::back_inserter(offs),
                 [&](const OffMark& off) { return off.position <= began.begin_position; });
    const std::size_t calls = add_rows_before(calls_before(traced, call), offs, wanted, out);
    show_rows_since(all, began.begin_position, calls, wanted, out);
  }

  /// The report is often millions of branches away from the end.
  bool add_reported(const ThreadCalls& traced, const RowSource& all, std::size_t wanted,
                    ReportThread& out) {
    ThreadCalls older;
    std::size_t call = kNoCall;
    // Who called it is not known where it began before what was looked at.
    for (std::uint64_t look = kFirstLook; look <= kLongestLook; look *= kLookGrowth) {
      if (options_.branches != 0) look = std::max(look, options_.branches);
      older = rebuild_calls(archive_, out.tid, look, insns_, symbols_, reported_->number);
      call = report_call(older.calls, symbols_, older.records);
      if (call != kNoCall && made_at(older.calls, call) != TraceeAddr{}) break;
    }
    if (call == kNoCall) return false;
    failures_[out.tid] = FailureSign::kReport;
    add_interrupted(older, call, out);
    const std::size_t calls = add_rows_before(calls_before(older, call), {}, wanted, out);
    const auto since = traced.position_of(reported_->number);
    show_rows_since(all, since.value_or(0), since ? calls : 0, wanted, out);
    return true;
  }

  [[nodiscard]] std::vector<ReportFrame> callers_of(const ThreadCalls& traced, std::size_t index) {
    std::vector<ReportFrame> out;
    for (std::size_t at = traced.calls[index].parent; at != kNoCall && out.size() < kMostCallers;
         at = traced.calls[at].parent) {
      const TraceeAddr site = made_at(traced.calls, at);
      if (site == TraceeAddr{}) break;
      const ReportPlace made = place(site);
      out.insert(out.end(), made.frames.begin(), made.frames.end());
      if (out.back().function.empty()) out.back().function = made.module_place;
    }
    return out;
  }

  /// Where the call at `index` was made.
  void add_interrupted(const ThreadCalls& traced, std::size_t index, ReportThread& out) {
    const Call& call = traced.calls[index];
    ReportInterrupted& before = out.interrupted.emplace();
    const TraceeAddr site = made_at(traced.calls, index);
    before.place = place(site);
    before.instruction = instruction(site);
    if (call.begin == CallBegin::kSignal) {
      before.returned = call.site == out.place.address;
    } else {
      before.by = call.function.known() ? symbols_.function_name(call.function.id)
                                        : symbols_.module_place(call.first);
      before.callers = callers_of(traced, index);
    }
  }

  /// @return How many calls there are, folded, those that are not shown, too.
  std::size_t add_rows_before(const ThreadCalls& older, const std::vector<OffMark>& offs,
                              std::size_t wanted, ReportThread& out) {
    const std::vector<FoldedRow> rows = fold_calls(older.calls, older.gaps, offs);
    const std::size_t calls = count_calls(rows, older.calls);
    out.interrupted->earlier_rows = calls - std::min(calls, wanted);
    out.interrupted->rows = report_rows({older.calls, older.gaps, rows, offs}, symbols_, wanted);
    return calls;
  }

  /// Fewer, where what led to the end is shown before them.
  void show_rows_since(const RowSource& all, std::uint64_t position, std::size_t before,
                       std::size_t wanted, ReportThread& out) {
    const std::size_t fewer = std::min(wanted, options_.other_calls);
    const std::size_t count = count_calls(all.rows, all.calls);
    out.rows = without_callers(report_rows(all, symbols_, fewer), position);
    out.earlier_rows = count - std::min(count, before + fewer);
  }

  static void add_times(const TraceTimes& times, const ThreadCalls& traced,
                        std::vector<ReportRow>& rows) {
    const ThreadTimes& all = times.times();
    for (ReportRow& row : rows) {
      if (row.kind != RowKind::kCall || row.from_stack) continue;
      if (row.begin_position < traced.numbered_from()) continue;
      const TimeRange began = times.time_of(traced.first + row.begin_position);
      // Older than what is known of times.
      if (began.earliest_ns <= all.since_ns) continue;
      row.began_before_end = {all.until_ns - began.latest_ns, all.until_ns - began.earliest_ns};
    }
  }

  const CoreFile& core_;
  const TraceArchive& archive_;
  std::map<std::uint32_t, ThreadCheck> checks_;
  CodeReader& code_;
  Symbols& symbols_;
  ReportOptions options_;
  InsnCache insns_;
  std::vector<SignatureFrame> signature_frames_;  ///< Of the first thread.
  bool sent_ = false;                             ///< The signal that ended the program.
  /// Where the recorder saw a sanitizer's first report begin: the thread, and how many records it
  /// had then.
  struct Reported {
    std::uint32_t tid = 0;
    std::uint64_t number = 0;
  };
  std::optional<Reported> reported_;
  std::map<std::uint32_t, FailureSign> failures_;  ///< By thread.
  std::uint64_t scan_left_ = kFailureLooks;
};

}  // namespace

Report build_report(const CoreFile& core, const TraceArchive& archive, CodeReader& code,
                    Symbols& symbols, const ReportOptions& options) {
  return Builder{core, archive, code, symbols, options}.build();
}

}  // namespace backtrail::decoder
