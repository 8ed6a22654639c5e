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

/// The last `most` calls and what they lie within.
[[nodiscard]] std::vector<ReportRow> report_rows(const RowSource& source, Symbols& symbols,
                                                 std::size_t most);

/// How many rows are calls that the trace tells of.
[[nodiscard]] std::size_t count_calls(std::span<const FoldedRow> rows, std::span<const Call> calls);

/// How many of the last calls there are from the newest on to the `own`th that is not of a run-time
/// library; `most` if there are not so many among the last `most`.
[[nodiscard]] std::size_t calls_with_own(const RowSource& source, const Symbols& symbols,
                                         std::size_t own, std::size_t most);

/// A gap as a sentence.
[[nodiscard]] std::string gap_text(const Record& gap);

}  // namespace backtrail::decoder
