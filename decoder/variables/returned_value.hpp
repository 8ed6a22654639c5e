// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What functions return.

#include <optional>

#include "decoder/variables/function_frame.hpp"

namespace backtrail::decoder {

/// Returns the value that a function returned; nullopt if it returns none, or anything but a number
/// of up to 64 bits, a pointer or a reference. The value is not known if the compiler may have
/// changed how the function returns it.
/// @param place  The function's first instruction.
/// @param state  The state after its return.
[[nodiscard]] std::optional<Variable> returned_value(const FunctionPlace& place, FrameState& state,
                                                     WorkLimit& work);

}  // namespace backtrail::decoder
