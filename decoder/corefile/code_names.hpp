#pragma once
/// @file
/// Names of code that a program made while it ran (a JIT's), as it tells perf: lines in
/// /tmp/perf-PID.map. Source: tools/perf/Documentation/jit-interface.txt of Linux.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/base/result.hpp"

namespace backtrail::decoder {

/// Made code at [start, start + size).
struct CodeName {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string name;
  bool operator==(const CodeName&) const = default;
};

/// Of the lines "START SIZE NAME", hexadecimal; others are passed over. By address, none over
/// another: where memory was used again the younger line counts, and its name says so, for records
/// may be of the time before.
[[nodiscard]] std::vector<CodeName> parse_perf_map(std::string_view text);

inline constexpr std::uint32_t kNamesVersion = 1;
inline constexpr std::size_t kMostNameBytes = 1024;

/// Appends blocks (trace_blocks.hpp) to `out`. Longer names are cut.
void append_names(std::span<const CodeName> names, std::vector<std::uint8_t>& out);

struct TraceBlock;
/// Appends a block's. Error kMalformed: damaged, or of a version that this does not know; `out` is
/// as it was.
Result<void> decode_names(const TraceBlock& block, std::vector<CodeName>& out);

}  // namespace backtrail::decoder
