// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/report_builder.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "decoder/corefile/ended_threads.hpp"
#include "decoder/report/end_facts.hpp"
#include "decoder/report/failure_scan.hpp"
#include "decoder/report/thread_report.hpp"

namespace backtrail::decoder {
namespace {

/// Most ended threads in a report.
constexpr std::size_t kMostEnded = 16;

void add_notes(const CoreFile& core, const TraceArchive& archive, const EndFacts& end,
               std::vector<std::string>& notes) {
  if (core.truncated()) notes.emplace_back("the file is truncated");
  if (core.newer_format()) {
    notes.emplace_back(
        "the traces have a newer format than this program supports; they were not read");
  } else if (archive.threads().empty()) {
    notes.emplace_back("the file contains no trace");
  }
  end.add_report_notes(notes);
  if (archive.unreadable_bytes() != 0) {
    notes.push_back(fmt::format("{} bytes of the traces are damaged and were skipped",
                                archive.unreadable_bytes()));
  }
}

/// Returns the ended threads to show: those that failed, then the newest, at most kMostEnded.
std::vector<CoreThread> shown_ended(const CoreFile& core, const TraceArchive& archive,
                                    FailureScan& scan, std::vector<std::string>& notes) {
  std::vector<CoreThread> out = ended_threads(core, archive);
  if (out.size() <= kMostEnded) return out;
  std::map<std::uint32_t, unsigned> weights;
  for (const CoreThread& thread : out) weights[thread.tid] = scan.weight(thread.tid);
  std::stable_sort(out.begin(), out.end(), [&](const CoreThread& a, const CoreThread& b) {
    return weights.at(a.tid) > weights.at(b.tid);
  });
  notes.push_back(fmt::format("{} more ended threads are in the file; backtrail info lists them",
                              out.size() - kMostEnded));
  out.resize(kMostEnded);
  return out;
}

/// Moves the thread that failed to the front. A thread killed by a signal is the cause; otherwise
/// the thread that failed may differ from the one that ended the process.
void put_failed_first(const ThreadReporter& reporter, std::vector<ReportThread>& threads) {
  if (threads.front().died) return;
  const auto rank = [&](const ReportThread& thread) { return reporter.failure(thread.tid); };
  // The first of the strongest: the thread that ended the process, then the newest that had ended.
  const auto worst =
      std::max_element(threads.begin(), threads.end(),
                       [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (rank(*worst) != FailureSign::kNone) std::rotate(threads.begin(), worst, worst + 1);
}

/// For a failure, the signature has the functions that the thread was in at that time.
std::vector<SignatureFrame> signature_frames(const ReportThread& first,
                                             const ThreadReporter& reporter) {
  if (!first.interrupted || first.interrupted->by.empty()) return reporter.first_functions();
  std::vector<SignatureFrame> out;
  const auto add = [&](const ReportFrame& frame) {
    if (!frame.function.empty()) out.push_back({frame.function, {}});
  };
  const ReportInterrupted& failure = *first.interrupted;
  std::for_each(failure.place.frames.begin(), failure.place.frames.end(), add);
  std::for_each(failure.callers.begin(), failure.callers.end(), add);
  return out;
}

void add_threads(const CoreFile& core, const TraceArchive& archive, const ReportOptions& options,
                 FailureScan& scan, ThreadReporter& reporter, Report& report) {
  for (const CoreThread& thread : core.threads()) {
    report.threads.push_back(reporter.living(thread));
    // Other threads are needed unless a signal identifies the cause.
    if (options.only_dead && report.threads.front().died) break;
  }
  report.left_out = core.threads().size() - report.threads.size();
  std::vector<CoreThread> ended;
  if (report.left_out == 0) ended = shown_ended(core, archive, scan, report.notes);
  for (const CoreThread& thread : ended) {
    report.threads.push_back(reporter.ended(thread, options.other_calls));
  }
  put_failed_first(reporter, report.threads);
  ReportThread& first = report.threads.front();
  if (first.ended) {
    const auto found = std::find_if(ended.begin(), ended.end(),
                                    [&](const CoreThread& one) { return one.tid == first.tid; });
    first = reporter.ended(*found, options.calls);
  }
  if (!options.only_dead) return;
  report.left_out += report.threads.size() - 1;
  report.threads.resize(1);
}

}  // namespace

Report build_report(const CoreFile& core, const TraceArchive& archive, CodeReader& code,
                    Symbols& symbols, const ReportOptions& options) {
  Report report;
  const EndFacts end{core};
  FailureScan scan{archive, symbols};
  ThreadReporter reporter{core, archive, code, symbols, options, end, scan};
  end.tell(report);
  add_notes(core, archive, end, report.notes);
  add_threads(core, archive, options, scan, reporter, report);
  const ReportThread& first = report.threads.front();
  report.first_signal = end.first_signal(first);
  report.signature = crash_signature(signature_frames(first, reporter),
                                     report.first_signal ? report.first_signal->name : end.word());
  return report;
}

}  // namespace backtrail::decoder
