#pragma once
/// @file
/// Several runs of TNT bits followed in turns by one thread, a step each, without a jump of our own
/// that depends on them: the CPU guesses nothing wrong, and while one waits for memory others go
/// on.

#include <array>
#include <bit>
#include <cstdint>

#include "decoder/pt/flow_graph.hpp"
#include "decoder/pt/leg_stack.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// One run: where it is.
struct FlowLane {
  static constexpr std::uint64_t kNoBits = std::uint64_t{1} << 63U;
  /// Steps between two looks at whether a lane can go on.
  static constexpr unsigned kSteps = 8;

  /// So many bytes behind a packet are there to be looked at.
  static constexpr std::ptrdiff_t kLookAhead = 8;

  /// Where it was when it had bits left, though perhaps fewer than steps were to come.
  struct Mark {
    Leg* leg = nullptr;
    std::uint64_t bits = kNoBits;
    Record* out = nullptr;
    Leg** top = nullptr;
    std::array<Leg*, kSteps> newest{};  ///< Of the call stack: what those steps may overwrite.
  };

  Leg* leg = nullptr;
  std::uint64_t bits = kNoBits;  ///< Not used yet, the oldest highest; then a 1, then zeros.
  Record* out = nullptr;
  LegStack::Loan stack;
  const Record* full = nullptr;      ///< Behind this, somebody must make room.
  const std::uint8_t* at = nullptr;  ///< Packets that are not in `bits`.
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

/// A packet of six TNT bits, which nearly all are.
constexpr bool is_full_tnt8(std::uint8_t byte) {
  return (byte & 0x81U) == 0x80U;
}
inline constexpr unsigned kFullTntBits = 6;
/// Of a short TNT packet.
constexpr unsigned tnt8_bits(std::uint8_t byte) {
  return static_cast<unsigned>(std::bit_width(byte)) - 2;
}

/// Follows all lanes until one of those in the mask `active` cannot go on: it has another packet
/// before it, or a branch for which a bit is not enough, or no room. Returns the mask of those.
/// Each has bits left, perhaps of packets that were not begun, or is where it was when it had some;
/// or execution came to a branch that needs a TIP just when the last bit was used.
unsigned follow_lanes(FlowLanes& lanes, unsigned active);

}  // namespace backtrail::decoder
