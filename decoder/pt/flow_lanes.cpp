// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/flow_lanes.hpp"

#include <algorithm>

#include "arch/base/bytes.hpp"
#include "decoder/pt/flow_limits.hpp"
#include "decoder/pt/record_batch.hpp"

namespace backtrail::decoder {
namespace {

constexpr unsigned kSteps = FlowLane::kSteps;
static_assert(kSteps < EdgeStack::Loan::kSpare);  // One more slot is for the call of a TIP.

/// Returns the bits of eight full packets, the oldest in the highest position. The lowest 16 bits
/// are zero.
constexpr std::uint64_t bits_of(std::uint64_t packets) {
  std::uint64_t bits = (packets >> 1U) & 0x3f3f'3f3f'3f3f'3f3fU;
  bits = __builtin_bswap64(bits);
  bits = ((bits & 0x3f00'3f00'3f00'3f00U) >> 2U) | (bits & 0x003f'003f'003f'003fU);
  bits = ((bits & 0x0fff'0000'0fff'0000U) >> 4U) | (bits & 0x0000'0fff'0000'0fffU);
  bits = ((bits & 0x00ff'ffff'0000'0000U) >> 8U) | (bits & 0x0000'0000'00ff'ffffU);
  return bits << 16U;
}

/// Appends `more` bits, the highest of `bits`, after the `count` unused ones. There must be room.
void append(FlowLane& lane, std::uint64_t bits, unsigned count, unsigned more) {
  lane.bits &= lane.bits - 1;
  lane.bits |= (bits >> count) | FlowLane::kNoBits >> (count + more);
}

/// Takes packets while there is room for their bits.
void refill(FlowLane& lane) {
  if (lane.end - lane.at <= FlowLane::kLookAhead) return;
  const auto packets = load_le<std::uint64_t>(lane.at);
  const std::uint64_t others =
      (~packets & 0x8080'8080'8080'8080U) | ((packets & 0x0101'0101'0101'0101U) << 7U);
  const auto full =
      static_cast<unsigned>(std::countr_zero(others)) / 8;  // 8 if all packets are full.
  const unsigned count = lane.count();
  const unsigned taken = std::min(full, (63 - count) / kFullTntBits);
  const unsigned more = taken * kFullTntBits;
  const std::uint64_t bits = bits_of(packets) & ~(~std::uint64_t{0} >> more);
  append(lane, bits, count, more);
  lane.at += taken;
  // A packet that is not full precedes a TIP.
  if (!is_tnt8(*lane.at) || count + more > 63 - kFullTntBits) return;
  const unsigned last = tnt8_bits(*lane.at);
  append(lane, std::uint64_t{*lane.at} >> 1U << (64 - last), count + more, last);
  ++lane.at;
}

/// The state that changes with every step.
struct Runner {
  Edge* edge;
  std::uint64_t bits;
  Record* out;
  Edge** top;
  Edge* newest;

  explicit Runner(const FlowLane& lane)
      : edge{lane.edge}, bits{lane.bits}, out{lane.out}, top{lane.stack.top}, newest{top[-1]} {}
  void step() {
    const Edge::InLane how = edge->in_lane;
    put_branch(out, edge->jump_from, edge->jump_to);
    out += how.jumps;
    *top = edge->behind;
    top += how.depth;
    const std::uint64_t bit = bits >> 63U;
    Edge* next = edge->next[bit];
    next = (bit & how.returns) != 0 ? newest : next;
    next = edge->end > EdgeEnd::kContinue ? edge : next;
    newest = top[-1];
    put_branch(out, edge->last, next->begin);
    out += bit & how.bits;
    bits <<= how.bits;
    edge = next;
  }
  void store(FlowLane& lane) const {
    lane.edge = edge;
    lane.bits = bits;
    lane.out = out;
    lane.stack.top = top;
  }
};

bool can_go_on(const FlowLane& lane) {
  return lane.edge->end <= EdgeEnd::kContinue && lane.out <= lane.full &&
         lane.stack.top <= lane.stack.most;
}

}  // namespace

void FlowLane::set_mark() {
  mark.edge = edge;
  mark.bits = bits;
  mark.out = out;
  mark.top = stack.top;
  std::copy_n(stack.top - kSteps, kSteps, mark.newest.begin());
}

void FlowLane::go_back() {
  edge = mark.edge;
  bits = mark.bits;
  out = mark.out;
  stack.top = mark.top;
  std::copy_n(mark.newest.begin(), kSteps, stack.top - kSteps);
}

unsigned follow_lanes(FlowLanes& lanes, unsigned active) {
  std::array<unsigned, kFlowLanes> before{};
  for (;;) {
    unsigned stopped = 0;
    for (unsigned i = 0; i < kFlowLanes; ++i) {
      FlowLane& lane = lanes[i];
      if (lane.count() <= kSteps) {
        refill(lane);
        if (lane.count() <= kSteps && lane.count() != 0) lane.set_mark();
      }
      const unsigned count = lane.count();
      // Direct jumps alone are no progress.
      const bool stays = !can_go_on(lane) || count == 0 || count == before[i];
      before[i] = count;
      stopped |= (stays ? 1U : 0U) << i;
    }
    if ((stopped & active) != 0) return stopped & active;
    Runner a{lanes[0]};
    Runner b{lanes[1]};
#pragma GCC unroll 8
    for (unsigned n = 0; n < kSteps; ++n) {
      a.step();
      b.step();
    }
    a.store(lanes[0]);
    b.store(lanes[1]);
    for (FlowLane& lane : lanes) {
      if (lane.bits == 0) [[unlikely]]
        lane.go_back();
    }
  }
}

}  // namespace backtrail::decoder
