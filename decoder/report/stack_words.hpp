// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Explains why some callers of a thread's calls are unknown.

#include <string>

#include "decoder/report/code_places.hpp"
#include "decoder/report/stack_join.hpp"
#include "decoder/symbols/stack.hpp"

namespace backtrail::decoder {

/// Returns a sentence without a full stop.
/// @param joined  The result of joining `stack`; not kComplete.
[[nodiscard]] std::string stack_problem(const Stack& stack, const JoinedStack& joined,
                                        const ThreadCalls& traced, CodePlaces& places);

}  // namespace backtrail::decoder
