#pragma once
/// @file
/// Makes the report of a crash file.

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/report/report.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

struct ReportOptions {
  std::size_t calls = 50;        ///< Shown of the thread that died.
  std::size_t other_calls = 10;  ///< Shown of each other thread.
  /// Looked at of each thread. 0: as many as the calls shown take, up to a bound.
  std::uint64_t branches = 0;
  bool only_dead = false;  ///< The thread that died, or was first, alone.
};

/// The thread that died stands first.
[[nodiscard]] Report build_report(const CoreFile& core, const TraceArchive& archive,
                                  CodeReader& code, Symbols& symbols, const ReportOptions& options);

}  // namespace backtrail::decoder
