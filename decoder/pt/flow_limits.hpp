// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Limits shared by the parts of FlowDecoder.

#include <cstdint>

namespace backtrail::decoder {

/// Most direct jumps followed without a packet. libipt handles programs that wait in a loop of only
/// direct jumps, and code that is not what ran.
constexpr unsigned kMaxDirectJumps = 1U << 12U;

/// Returns true for a short TNT packet (one byte).
constexpr bool is_tnt8(std::uint8_t byte) {
  return (byte & 1U) == 0 && byte > 2;
}

}  // namespace backtrail::decoder
