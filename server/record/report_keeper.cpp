// SPDX-License-Identifier: Apache-2.0
#include "server/record/report_keeper.hpp"

#include <algorithm>
#include <utility>

#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::server {

void ReportKeeper::keep(tracee::Thread& thread) {
  tracee::ThreadTrace* trace = thread.trace().get();
  if (trace == nullptr || trace->bts() == nullptr) return;
  if (!whole_) {
    // One more, because a gap for the omitted branches comes first, which must not take a branch's
    // place.
    const std::uint64_t room = trace->bts()->size_bytes() / sizeof(decoder::Record);
    const std::uint64_t left_out = trace->source().keep_newest(room + 1);
    reports_[thread.process().pid()].left_out[thread.tid()] += left_out == 0 ? 0 : left_out - 1;
  }
  trace->source().flush();
}

void ReportKeeper::note(tracee::Thread& thread, bool may_end) {
  tracee::ThreadTrace* trace = thread.trace().get();
  const auto regs = thread.user_regs();
  if (trace == nullptr || trace->bts() == nullptr || !regs) return;
  keep(thread);
  Reports& reports = reports_[thread.process().pid()];
  const decoder::BtsHistory& history = *trace->bts();
  const decoder::RecordRing& ring = history.records();
  Report report{.tid = thread.tid(),
                .position = ring.end(),
                .sp = regs->sp().value(),
                .may_end = may_end,
                .before = {}};
  if (!whole_) {
    for (std::uint64_t at = ring.end() - std::min<std::uint64_t>(kKept, ring.size());
         at < ring.end(); ++at) {
      report.before.push_back(ring.at(at));
    }
  }
  if (++reports.count == 1) {
    reports.first = std::move(report);
  } else {
    reports.last = std::move(report);
  }
}

const ReportKeeper::Reports* ReportKeeper::of(pid_t pid) const {
  const auto found = reports_.find(pid);
  return found == reports_.end() || found->second.count == 0 ? nullptr : &found->second;
}

bool ReportKeeper::ends_in_report(tracee::Thread& thread, const Ending& ending) const {
  const Reports* reports = of(thread.process().pid());
  if (reports == nullptr || ending.reason != EndReason::kSanitizer) return false;
  const Report& report = reports->newest();
  const auto regs = thread.user_regs();
  return report.may_end && report.tid == thread.tid() && regs && regs->sp().value() < report.sp;
}

void ReportKeeper::add_facts(pid_t pid, bool in_last,
                             std::map<std::string, std::string>& about) const {
  const Reports* reports = of(pid);
  if (reports == nullptr) return;
  // The first report usually causes the others, unless a later one ended the process.
  const Report& told = in_last ? reports->newest() : reports->first;
  about["reports"] = std::to_string(reports->count);
  about["report"] = std::to_string(in_last ? reports->count : 1);
  about["report-thread"] = std::to_string(told.tid);
  about["report-record"] = std::to_string(told.position);
}

}  // namespace backtrail::server
