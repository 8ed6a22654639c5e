#pragma once
/// @file
/// A report as text, Markdown and JSON.

#include <string>

#include "decoder/report/report.hpp"

namespace backtrail::decoder {

/// For terminals and logs. Of more than a few threads those that do the same are told of once, and
/// the rest in a line each, unless all of them are asked for.
[[nodiscard]] std::string report_text(const Report& report, bool all_threads = false);

/// A screen: how it ended, where, and the last calls of the thread that died.
[[nodiscard]] std::string report_summary(const Report& report);

/// The report's signature, a line.
[[nodiscard]] std::string report_signature(const Report& report);

/// For the page of a CI job; never longer than `most` bytes, and says what it leaves out.
inline constexpr std::size_t kMostMarkdown = 512U << 10U;
[[nodiscard]] std::string report_markdown(const Report& report, std::size_t most = kMostMarkdown);

/// docs/report-format.md describes it.
[[nodiscard]] std::string report_json(const Report& report);

}  // namespace backtrail::decoder
