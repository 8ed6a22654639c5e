// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Names and configuration of the branch sources.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace backtrail::tracee {

enum class SourceKind : std::uint8_t { kAuto, kPerfPt, kPerfBts, kLbr, kCache, kStep };

/// Returns "auto", "perf-pt", "perf-bts", "lbr", "cache" or "step".
[[nodiscard]] std::string_view to_string(SourceKind kind);
[[nodiscard]] std::optional<SourceKind> source_kind_from(std::string_view name);

/// Returns true if the CPU records, so that a kernel buffer holds the records.
[[nodiscard]] constexpr bool is_hardware(SourceKind kind) {
  return kind == SourceKind::kPerfPt || kind == SourceKind::kPerfBts || kind == SourceKind::kLbr;
}

/// Trace format that the debugger asked for.
enum class TraceFormat : std::uint8_t { kBts, kPt };

class PerfKernel;
struct SourceStatistics;
namespace cache {
class PersistentStore;
class SpareMemory;
}  // namespace cache

/// The values that a source records besides branches.
enum class ValueDepth : std::uint8_t {
  kFree,  ///< Branches alone.
  /// The registers that form the addresses of stores, and the numbers, arguments and results of
  /// system calls. The cache source can.
  kMost,
  kAll,  ///< The bytes that stores overwrite, besides.
};

struct TraceConfig {
  TraceFormat format = TraceFormat::kBts;
  std::uint64_t size_bytes = 0;
  /// Limit, in bytes, of the log that a source keeps undecoded; 0 = as much as surely fills the
  /// history. If not 0, the log left at an exec or at the thread's end is dropped undecoded.
  std::uint64_t log_bytes = 0;
  /// Sources add their numbers here; may be null.
  std::shared_ptr<SourceStatistics> statistics = {};
  /// Consumers get every record: sources with a kernel buffer read it while the thread runs, so
  /// that the oldest records are not overwritten.
  bool every_record = false;
  ValueDepth values = ValueDepth::kFree;
  /// Kernel for the hardware sources; null: the real one.
  PerfKernel* perf = nullptr;
  /// Persistent cache from which translations are loaded and to which they are saved; may be null.
  std::shared_ptr<cache::PersistentStore> kept = {};
  /// Memory of ended programs, for the next ones; may be null.
  std::shared_ptr<cache::SpareMemory> spare = {};
};

}  // namespace backtrail::tracee
