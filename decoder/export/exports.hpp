// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes the calls of a crash file for other programs' viewers, in pieces. Names are escaped.

#include <cstdint>
#include <functional>
#include <string_view>

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

/// The input of an export; everything is borrowed.
struct ExportSource {
  const CoreFile& core;
  const TraceArchive& archive;
  CodeReader& code;
  Symbols& symbols;
  std::uint64_t branches = 0;  ///< Number of newest branches of each thread.
};

using TextSink = std::function<void(std::string_view)>;

/// Writes "thread;caller;callee COUNT" lines for flame graphs, one for each stack. COUNT is
/// branches.
void write_folded(const ExportSource& source, const TextSink& sink);

/// Writes speedscope's own format, with a profile for each thread. The unit is branches.
void write_speedscope(const ExportSource& source, const TextSink& sink);

/// Writes Chrome trace events, which Perfetto and speedscope read, with a track for each thread.
/// All tracks end at the same time. A branch takes one microsecond.
void write_trace_events(const ExportSource& source, const TextSink& sink);

}  // namespace backtrail::decoder
