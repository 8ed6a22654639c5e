// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Selects the rows of a report that matter most to readers.

#include <cstddef>
#include <string>
#include <vector>

#include "decoder/report/report.hpp"

namespace backtrail::decoder {

struct ShownRows {
  std::vector<ReportRow> rows;
  std::size_t start_up = 0;  ///< Calls left out before main or before the thread's function.
};

/// Returns the rows from main or the thread's own function on, without the start-up code that is
/// the same in every program. Returns all rows if there is no such function.
[[nodiscard]] ShownRows without_start_up(std::vector<ReportRow> rows);

/// Keeps at most `most` of the rows that are shown only as callers. A row states how many are left
/// out. `most` is at least 3.
[[nodiscard]] std::vector<ReportRow> with_few_callers(std::vector<ReportRow> rows,
                                                      std::size_t most);

/// Threads at the same place in the same calls.
struct ThreadGroup {
  std::vector<std::size_t> threads;  ///< Indices into Report::threads, in order.
};
/// Returns the groups in the order of their first threads.
[[nodiscard]] std::vector<ThreadGroup> thread_groups(const Report& report);

}  // namespace backtrail::decoder
