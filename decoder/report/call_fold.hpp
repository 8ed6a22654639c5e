#pragma once
/// @file
/// Calls folded: what a loop does again and again stands once, with how often.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// A place where something is not known, among calls.
struct GapMark {
  Record record;
  std::uint64_t position = 0;  ///< As in Call.
};

/// The thread was off its CPU here.
struct OffMark {
  std::uint64_t position = 0;  ///< As in Call: that many records had been executed.
  std::uint64_t ns = 0;
  std::uint64_t before_end_ns = 0;  ///< It was back so long before the thread's last moment.
  bool preempted = false;
};

/// A line of a folded call tree, callers before what they call.
struct FoldedRow {
  enum class Kind : std::uint8_t { kCall, kRepeat, kGap, kOff, kRounds };
  Kind kind = Kind::kCall;
  std::uint32_t level = 0;
  std::size_t index = 0;  ///< Of the call, gap or mark. Of kRepeat: none.
  std::uint64_t repeat = 1;
  std::uint64_t nested = 1;  ///< Calls of itself that were folded into this one.
  /// Of kRounds: the last so many callers called each other in a circle, `repeat` times more.
  std::uint32_t round = 0;
  std::uint64_t calls = 0;  ///< Of kRounds: all that were made in those.
};

/// Calls with the same function, site, outcome and calls within, one behind the other, become one;
/// so do sequences of a few that repeat, and functions that do nothing but call themselves. Where
/// functions call each other, and in each round the same ones beside, the first round is shown.
/// @param calls  As CallRebuilder::finish has them.
/// @param offs   By position. They fold like calls; about the same length is the same.
[[nodiscard]] std::vector<FoldedRow> fold_calls(std::span<const Call> calls,
                                                std::span<const GapMark> gaps,
                                                std::span<const OffMark> offs = {});

}  // namespace backtrail::decoder
