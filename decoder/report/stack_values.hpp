// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The values of a stack's variables.

#include <string>
#include <vector>

#include "decoder/report/code_places.hpp"
#include "decoder/report/report.hpp"
#include "decoder/report/stack_join.hpp"
#include "decoder/symbols/stack.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

/// Most frames whose variables are read, without inlined ones.
inline constexpr std::size_t kMostValueFrames = 32;

/// Reads the variables of the innermost frames, up to the first one that contradicts the trace.
/// @param end     The innermost frame's state; null if it is unknown.
/// @param joined  Tells where the stack contradicts the calls of the trace.
[[nodiscard]] ReportStack stack_values(const Stack& stack, const JoinedStack& joined,
                                       FrameState* end, CodePlaces& places, Symbols& symbols);

}  // namespace backtrail::decoder
