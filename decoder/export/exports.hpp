#pragma once
/// @file
/// The calls of a crash file for other programs' viewers. Written in pieces; names are escaped.

#include <cstdint>
#include <functional>
#include <string_view>

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

/// What is exported; everything is borrowed.
struct ExportSource {
  const CoreFile& core;
  const TraceArchive& archive;
  CodeReader& code;
  Symbols& symbols;
  std::uint64_t branches = 0;  ///< Of each thread, the newest.
};

using TextSink = std::function<void(std::string_view)>;

/// A line a stack, "thread;caller;callee COUNT", for flame graphs; the count is branches.
void write_folded(const ExportSource& source, const TextSink& sink);

/// speedscope's own format, a profile a thread; the unit is branches.
void write_speedscope(const ExportSource& source, const TextSink& sink);

/// Chrome's trace events, which Perfetto and speedscope read: a track a thread, all ending at the
/// same time. A microsecond is a branch.
void write_trace_events(const ExportSource& source, const TextSink& sink);

}  // namespace backtrail::decoder
