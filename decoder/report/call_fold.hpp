// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Folds a call tree: a loop's repeated calls become one row with a count.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// A gap in the recording, placed among calls.
struct GapMark {
  Record record;
  std::uint64_t position = 0;  ///< In the units of Call::begin_position.
};

/// A time that the thread spent off its CPU.
struct OffMark {
  /// Number of records executed before it, in the units of Call::begin_position.
  std::uint64_t position = 0;
  std::uint64_t ns = 0;
  /// Time from its end to the thread's last moment, in nanoseconds.
  std::uint64_t before_end_ns = 0;
  bool preempted = false;
};

/// A row of a folded call tree. Callers precede their callees.
struct FoldedRow {
  enum class Kind : std::uint8_t { kCall, kRepeat, kGap, kOff, kRounds };
  Kind kind = Kind::kCall;
  std::uint32_t level = 0;
  std::size_t index = 0;  ///< Index of the call, gap or mark; 0 for kRepeat.
  std::uint64_t repeat = 1;
  /// Depth of direct recursion folded into this call; 1 if it is not recursive.
  std::uint64_t nested = 1;
  /// kRounds: number of callers that form one round. The round ran `repeat` more times.
  std::uint32_t round = 0;
  std::uint64_t calls = 0;  ///< kRounds: number of calls made in those rounds.
};

/// Folds a call tree. Adjacent calls with the same function, site, outcome and inner calls become
/// one row, as do short sequences that repeat and functions that only call themselves. For mutual
/// recursion whose rounds make the same side calls, the first round is shown and the others are
/// counted.
/// @param calls  The result of CallRebuilder::finish().
/// @param offs   Sorted by position. They fold like calls; lengths within the same power of two are
/// equal.
[[nodiscard]] std::vector<FoldedRow> fold_calls(std::span<const Call> calls,
                                                std::span<const GapMark> gaps,
                                                std::span<const OffMark> offs = {});

}  // namespace backtrail::decoder
