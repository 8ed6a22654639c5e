#pragma once
/// @file
/// What the parts of FlowDecoder share.

#include <cstdint>

namespace backtrail::decoder {

/// Direct jumps that are followed without a packet. Programs that wait in a loop of nothing but
/// those, and code that was not what ran, are left to libipt.
constexpr unsigned kMaxDirectJumps = 1U << 12U;

/// A packet of TNT bits in one byte.
constexpr bool is_tnt8(std::uint8_t byte) {
  return (byte & 1U) == 0 && byte > 2;
}

}  // namespace backtrail::decoder
