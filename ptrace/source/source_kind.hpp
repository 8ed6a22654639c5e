#pragma once
/// @file
/// The branch sources by name.

#include <cstdint>
#include <optional>
#include <string_view>

namespace backtrail::tracee {

enum class SourceKind : std::uint8_t { kAuto, kPerfPt, kPerfBts, kLbr, kCache, kStep };

/// "auto", "perf-pt", "perf-bts", "lbr", "cache", "step".
[[nodiscard]] std::string_view to_string(SourceKind kind);
[[nodiscard]] std::optional<SourceKind> source_kind_from(std::string_view name);

/// The form a debugger asked for.
enum class TraceFormat : std::uint8_t { kBts, kPt };

struct TraceConfig {
  TraceFormat format = TraceFormat::kBts;
  std::uint64_t size_bytes = 0;
};

}  // namespace backtrail::tracee
