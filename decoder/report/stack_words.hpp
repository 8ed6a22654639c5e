#pragma once
/// @file
/// Why the callers of a thread's calls are not all known, in words.

#include <string>

#include "decoder/report/code_places.hpp"
#include "decoder/report/stack_join.hpp"
#include "decoder/symbols/stack.hpp"

namespace backtrail::decoder {

/// A sentence without a full stop. @param joined  Of `stack`; its result is not kComplete.
[[nodiscard]] std::string stack_problem(const Stack& stack, const JoinedStack& joined,
                                        const ThreadCalls& traced, CodePlaces& places);

}  // namespace backtrail::decoder
