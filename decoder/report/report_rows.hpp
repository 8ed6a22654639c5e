// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The newest rows of a folded call tree, with names.

#include <cstddef>
#include <span>
#include <vector>

#include "decoder/report/call_fold.hpp"
#include "decoder/report/report.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

struct RowSource {
  std::span<const Call> calls;
  std::span<const GapMark> gaps;
  std::span<const FoldedRow> rows;
  std::span<const OffMark> offs = {};
};

/// Returns the last `most` calls and the calls that contain them.
[[nodiscard]] std::vector<ReportRow> report_rows(const RowSource& source, Symbols& symbols,
                                                 std::size_t most);

/// Returns the number of rows that are calls found in the trace.
[[nodiscard]] std::size_t count_calls(std::span<const FoldedRow> rows, std::span<const Call> calls);

/// Returns how many of the newest calls reach back to the `own`th call outside of run-time
/// libraries; `most` if there are fewer such calls among the last `most`.
[[nodiscard]] std::size_t calls_with_own(const RowSource& source, const Symbols& symbols,
                                         std::size_t own, std::size_t most);

/// Describes a gap in a sentence.
[[nodiscard]] std::string gap_text(const Record& gap);

}  // namespace backtrail::decoder
