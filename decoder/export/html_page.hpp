// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes the trace as a self-contained HTML page.

#include <string>
#include <vector>

#include "decoder/export/exports.hpp"
#include "decoder/report/report.hpp"

namespace backtrail::decoder {

class ValueSource;

struct PageOptions {
  std::vector<std::string> roots;  ///< Folders that are searched for sources first.
  /// Where the values of variables come from, borrowed; null for a page without values.
  ValueSource* values = nullptr;
};

/// Writes a page with the lanes of all threads, their calls, the lines that ran, the variables at
/// the newest lines of the report's first thread, and the source text found on this machine. The
/// page includes `report` as text, also for readers without scripts.
void write_page(const ExportSource& source, const Report& report, const PageOptions& options,
                const TextSink& sink);

/// Returns a source file's text; empty if it does not exist, is too long, or does not look like a
/// source by its name. The name check keeps debug information from putting other files into a page.
[[nodiscard]] std::string read_source(const std::string& path,
                                      const std::vector<std::string>& roots);

}  // namespace backtrail::decoder
