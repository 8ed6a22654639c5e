// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The words for beginnings and ends of calls in JSON.

#include "decoder/calls/call.hpp"

namespace backtrail::decoder {

[[nodiscard]] const char* name_of(CallBegin begin);
[[nodiscard]] const char* name_of(CallEnd end);

}  // namespace backtrail::decoder
