// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Builds the report of a crash file.

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/report/report.hpp"
#include "decoder/report/report_options.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

/// Returns the report. The thread that died or failed is first.
[[nodiscard]] Report build_report(const CoreFile& core, const TraceArchive& archive,
                                  CodeReader& code, Symbols& symbols, const ReportOptions& options);

}  // namespace backtrail::decoder
