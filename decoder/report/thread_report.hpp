// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Builds the part of a report on one thread.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/past_code.hpp"
#include "decoder/corefile/thread_times.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/corefile/trace_check.hpp"
#include "decoder/report/call_fold.hpp"
#include "decoder/report/code_places.hpp"
#include "decoder/report/end_facts.hpp"
#include "decoder/report/failure_scan.hpp"
#include "decoder/report/interruption.hpp"
#include "decoder/report/report.hpp"
#include "decoder/report/report_options.hpp"

namespace backtrail::decoder {

class ThreadReporter {
 public:
  /// Borrows all arguments.
  ThreadReporter(const CoreFile& core, const TraceArchive& archive, CodeReader& code,
                 Symbols& symbols, const ReportOptions& options, const EndFacts& end,
                 FailureScan& scan);

  /// Reports on a thread of the core.
  ReportThread living(const CoreThread& thread);
  /// Reports on a thread that had ended.
  /// @param calls  Number of calls to show.
  ReportThread ended(const CoreThread& thread, std::size_t calls);

  /// Returns the evidence of a failure in a thread already reported on.
  [[nodiscard]] FailureSign failure(std::uint32_t tid) const;
  /// Returns the functions that the first reported thread is in, innermost first; if it is in a
  /// handler, those of the interrupted code.
  [[nodiscard]] const std::vector<SignatureFrame>& first_functions() const {
    return first_functions_;
  }

 private:
  void add_counts(std::uint32_t tid, ReportThread& out) const;
  std::uint64_t first_look(const ReportThread& thread);
  void add_calls(const CoreThread& thread, std::size_t wanted, ReportThread& out);
  void add_found(const CoreThread& thread, ThreadCalls& traced, std::span<const OffMark> offs,
                 std::vector<FoldedRow> rows, std::size_t wanted, ReportThread& out);
  JoinedStack add_stack(const CoreThread& thread, ThreadCalls& traced, ReportThread& out);
  void add_arrival(const CoreThread& thread, const ThreadCalls& traced, ReportThread& out);
  std::vector<SignatureFrame> functions_of(const ThreadCalls& traced, TraceeAddr pc);

  const CoreFile& core_;
  const TraceArchive& archive_;
  std::map<std::uint32_t, ThreadCheck> checks_;
  CodeReader& code_;
  Symbols& symbols_;
  const ReportOptions& options_;
  const EndFacts& end_;
  FailureScan& scan_;
  PastCode insns_;
  CodePlaces places_;
  InterruptionFinder interruptions_;
  std::vector<SignatureFrame> first_functions_;
  std::map<std::uint32_t, FailureSign> failures_;  ///< By thread id.
};

}  // namespace backtrail::decoder
