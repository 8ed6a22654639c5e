// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Names of code that a program generated at run time (JIT), from the lines that it wrote for perf
/// to /tmp/perf-PID.map. Source: tools/perf/Documentation/jit-interface.txt of Linux.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/base/result.hpp"

namespace backtrail::decoder {

/// A name of generated code at [start, start + size).
struct CodeName {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string name;
  bool operator==(const CodeName&) const = default;
};

/// Parses lines "START SIZE NAME" with hexadecimal numbers and skips others. Returns ranges sorted
/// by address that do not overlap. If memory was reused, the newer line wins and its name says so,
/// because records may be older.
[[nodiscard]] std::vector<CodeName> parse_perf_map(std::string_view text);

inline constexpr std::uint32_t kNamesVersion = 1;
inline constexpr std::size_t kMostNameBytes = 1024;

/// Appends blocks (trace_blocks.hpp) with the names to `out`. Names longer than kMostNameBytes are
/// cut.
void append_names(std::span<const CodeName> names, std::vector<std::uint8_t>& out);

struct TraceBlock;
/// Appends the names in `block` to `out`. Error kMalformed: damaged, or of an unknown version;
/// `out` is then unchanged.
Result<void> decode_names(const TraceBlock& block, std::vector<CodeName>& out);

}  // namespace backtrail::decoder
