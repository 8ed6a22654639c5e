// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds what a thread was doing before a handler ran, a sanitizer began its report, or it failed.

#include <cstdint>
#include <vector>

#include "decoder/corefile/past_code.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/report/code_places.hpp"
#include "decoder/report/end_facts.hpp"
#include "decoder/report/failure_calls.hpp"
#include "decoder/report/report.hpp"
#include "decoder/report/report_options.hpp"
#include "decoder/report/report_rows.hpp"
#include "decoder/report/stack_join.hpp"
#include "decoder/report/thread_calls.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

/// Returns true if no signal ended the process and this thread's earlier actions may be the cause.
[[nodiscard]] bool may_have_failed(const EndFacts& end, const ReportThread& thread);
/// Returns true if a sanitizer's report began in the thread.
[[nodiscard]] bool is_reported(const EndFacts& end, const ReportThread& thread);

class InterruptionFinder {
 public:
  /// Borrows all arguments.
  InterruptionFinder(const TraceArchive& archive, PastCode& insns, Symbols& symbols,
                     CodePlaces& places, const EndFacts& end, const ReportOptions& options)
      : archive_{archive},
        insns_{insns},
        symbols_{symbols},
        places_{places},
        end_{end},
        options_{options} {}

  /// Finds where a sanitizer's report began, where a handler interrupted the thread (if the thread
  /// died in the handler or just after it), or where the thread failed. Fills in
  /// ReportThread::interrupted and removes the rows before that point from ReportThread::rows.
  /// @param all    The calls of `traced`, with their rows.
  /// @param stack  Which of the calls came from the stack.
  /// @return The evidence of a failure in the thread.
  FailureSign find(const ThreadCalls& traced, const RowSource& all, const JoinedStack& stack,
                   std::size_t wanted, ReportThread& out);

 private:
  FailureCall failure_of(const ThreadCalls& traced, const ReportThread& thread);
  bool add_reported(const ThreadCalls& traced, const RowSource& all, std::size_t wanted,
                    ReportThread& out);
  [[nodiscard]] std::vector<ReportFrame> callers_of(const ThreadCalls& traced, std::size_t index);
  void add_interrupted(const ThreadCalls& traced, std::size_t index, ReportThread& out);
  std::size_t add_rows_before(const ThreadCalls& older, const std::vector<OffMark>& offs,
                              std::size_t wanted, ReportThread& out);
  void show_rows_since(const RowSource& all, std::uint64_t position, std::size_t before,
                       std::size_t wanted, ReportThread& out);

  const TraceArchive& archive_;
  PastCode& insns_;
  Symbols& symbols_;
  CodePlaces& places_;
  const EndFacts& end_;
  const ReportOptions& options_;
};

}  // namespace backtrail::decoder
