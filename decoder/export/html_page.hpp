#pragma once
/// @file
/// The trace as one page that needs nothing else.

#include <string>
#include <vector>

#include "decoder/export/exports.hpp"
#include "decoder/report/report.hpp"

namespace backtrail::decoder {

struct PageOptions {
  std::vector<std::string> roots;  ///< Folders below which sources are looked for first.
};

/// A page with the lanes of all threads, their calls, the lines that ran and the source text that
/// is found here. `report` stands in it as text, also for readers without scripts.
void write_page(const ExportSource& source, const Report& report, const PageOptions& options,
                const TextSink& sink);

/// The source file as text; nothing where it does not exist, is too long, or does not look like a
/// source by its name: debug information of strangers must not put other files into a page.
[[nodiscard]] std::string read_source(const std::string& path,
                                      const std::vector<std::string>& roots);

}  // namespace backtrail::decoder
