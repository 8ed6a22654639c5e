// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes several streams of TNT bits in turns on one thread, one step each. No jump of the
/// decoder depends on the bits, so the CPU mispredicts none, and while one stream waits for memory
/// the others continue.

#include <array>
#include <bit>
#include <cstdint>

#include "decoder/pt/edge_stack.hpp"
#include "decoder/pt/flow_graph.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// The state of one stream.
struct FlowLane {
  static constexpr std::uint64_t kNoBits = std::uint64_t{1} << 63U;
  /// Steps between two checks of whether a stream can continue.
  static constexpr unsigned kSteps = 8;

  /// Bytes that must exist after a packet.
  static constexpr std::ptrdiff_t kLookAhead = 8;

  /// The last state with bits left, though perhaps fewer than kSteps.
  struct Mark {
    Edge* edge = nullptr;
    std::uint64_t bits = kNoBits;
    Record* out = nullptr;
    Edge** top = nullptr;
    /// The newest call stack entries, which those steps may overwrite.
    std::array<Edge*, kSteps> newest{};
  };

  Edge* edge = nullptr;
  /// Unused bits, the oldest in the highest position; then a 1, then zeros.
  std::uint64_t bits = kNoBits;
  Record* out = nullptr;
  EdgeStack::Loan stack;
  const Record* full = nullptr;      ///< Room for records ends soon after this.
  const std::uint8_t* at = nullptr;  ///< The first packet that is not in `bits`.
  const std::uint8_t* end = nullptr;
  Mark mark;  ///< Valid when no bit is left.

  [[nodiscard]] unsigned count() const {
    return 63U - static_cast<unsigned>(std::countr_zero(bits));
  }
  void set_mark();
  void go_back();
};

inline constexpr std::size_t kFlowLanes = 2;
using FlowLanes = std::array<FlowLane, kFlowLanes>;

/// Returns true for a packet of six TNT bits; nearly all packets are.
constexpr bool is_full_tnt8(std::uint8_t byte) {
  return (byte & 0x81U) == 0x80U;
}
inline constexpr unsigned kFullTntBits = 6;
/// Returns the number of bits in a short TNT packet.
constexpr unsigned tnt8_bits(std::uint8_t byte) {
  return static_cast<unsigned>(std::bit_width(byte)) - 2;
}

/// Decodes all streams until one in the mask `active` cannot continue: another kind of packet is
/// next, or a branch needs more than a bit, or room is missing. Returns the mask of those. Each
/// stream then has bits left, perhaps of packets not begun, or is at its mark, or has used the last
/// bit just before a branch that needs a TIP.
unsigned follow_lanes(FlowLanes& lanes, unsigned active);

}  // namespace backtrail::decoder
