#pragma once
/// @file
/// The branch sources by name.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace backtrail::tracee {

enum class SourceKind : std::uint8_t { kAuto, kPerfPt, kPerfBts, kLbr, kCache, kStep };

/// "auto", "perf-pt", "perf-bts", "lbr", "cache", "step".
[[nodiscard]] std::string_view to_string(SourceKind kind);
[[nodiscard]] std::optional<SourceKind> source_kind_from(std::string_view name);

/// The CPU records, and the kernel's buffer is what there is of it.
[[nodiscard]] constexpr bool is_hardware(SourceKind kind) {
  return kind == SourceKind::kPerfPt || kind == SourceKind::kPerfBts || kind == SourceKind::kLbr;
}

/// The form a debugger asked for.
enum class TraceFormat : std::uint8_t { kBts, kPt };

class PerfKernel;
struct SourceStatistics;
namespace cache {
class KeptStore;
}

struct TraceConfig {
  TraceFormat format = TraceFormat::kBts;
  std::uint64_t size_bytes = 0;
  /// How much a source that logs keeps undecoded, in bytes of its log; 0 = as much as surely fills
  /// the history. When given, what an exec or the thread's end leaves behind is dropped undecoded.
  std::uint64_t log_bytes = 0;
  /// Sources add their numbers here; may be empty.
  std::shared_ptr<SourceStatistics> statistics = {};
  /// Listeners get every record: sources with a buffer of the kernel's read it while the thread
  /// runs, instead of having the oldest overwritten.
  bool every_record = false;
  /// The kernel's side of the hardware sources; null: the real one.
  PerfKernel* perf = nullptr;
  /// Translations are taken from here and left here; may be empty.
  std::shared_ptr<cache::KeptStore> kept = {};
};

}  // namespace backtrail::tracee
