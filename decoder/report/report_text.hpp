// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes a report as text, Markdown or JSON.

#include <string>

#include "decoder/report/report.hpp"

namespace backtrail::decoder {

/// Writes the report for terminals and logs. If there are many threads, threads in the same calls
/// are shown once, and further groups in a line each, unless `all_threads` is set.
[[nodiscard]] std::string report_text(const Report& report, bool all_threads = false);

/// Writes a screenful: how the program ended, where, and the last calls of the first thread.
[[nodiscard]] std::string report_summary(const Report& report);

/// Writes the report's signature as one line.
[[nodiscard]] std::string report_signature(const Report& report);

/// Writes Markdown for the page of a CI job: at most `most` bytes, with a note of what is left out.
inline constexpr std::size_t kMostMarkdown = 512U << 10U;
[[nodiscard]] std::string report_markdown(const Report& report, std::size_t most = kMostMarkdown);

/// Writes JSON as docs/report-format.md describes it.
[[nodiscard]] std::string report_json(const Report& report);

}  // namespace backtrail::decoder
