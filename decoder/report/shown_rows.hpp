#pragma once
/// @file
/// Which rows of a report people want to see first.

#include <cstddef>
#include <string>
#include <vector>

#include "decoder/report/report.hpp"

namespace backtrail::decoder {

struct ShownRows {
  std::vector<ReportRow> rows;
  std::size_t start_up = 0;  ///< Calls left out that were made before main, or a thread's function.
};

/// The rows from main on, or from a thread's own function on: what called it, and was called before
/// it, is the same in every program. All rows where there is no such function.
[[nodiscard]] ShownRows without_start_up(std::vector<ReportRow> rows);

/// Of the rows that only show what the others lie within, at most `most`; a row says how many are
/// left out. `most` is at least 3.
[[nodiscard]] std::vector<ReportRow> with_few_callers(std::vector<ReportRow> rows,
                                                      std::size_t most);

/// Threads that do the same, by where they are and what they are in.
struct ThreadGroup {
  std::vector<std::size_t> threads;  ///< Indices into Report::threads, in order.
};
/// In the order of their first threads.
[[nodiscard]] std::vector<ThreadGroup> thread_groups(const Report& report);

}  // namespace backtrail::decoder
