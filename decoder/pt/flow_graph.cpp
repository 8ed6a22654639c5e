// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/flow_graph.hpp"

#include <utility>

#include "decoder/pt/leg_stack.hpp"

namespace backtrail::decoder {
namespace {

constexpr unsigned kFirstSlotBits = 10;
/// Bound of 128 MiB.
constexpr std::size_t kMaxLegs = std::size_t{1} << 21U;
/// A longer run without a branch is not code.
constexpr std::size_t kMaxInsns = std::size_t{1} << 16U;

Leg::InLane in_lane(const Leg& leg) {
  if (leg.end > LegEnd::kContinue) return {};
  const bool returns = leg.end == LegEnd::kReturn;
  return {.returns = static_cast<std::uint8_t>(returns ? 1 : 0),
          .jumps = leg.jumps,
          .bits = static_cast<std::uint8_t>(leg.end == LegEnd::kContinue ? 0 : 1),
          .depth = static_cast<std::int8_t>(returns ? -1 : leg.calls)};
}

}  // namespace

Leg& idle_leg() {
  static Leg* const leg = [] {
    static Leg made;
    made.next = {&made, &made};
    made.end = LegEnd::kNowhere;
    return &made;
  }();
  return *leg;
}

FlowGraph::FlowGraph(CodeReader& code) : pages_{code} {
  forget();
}

void FlowGraph::refresh() {
  if (!pages_.unchanged() || legs_.size() > kMaxLegs) forget();
}

void FlowGraph::forget() {
  insns_.invalidate_all();
  legs_.clear();
  ways_.assign(kMemos, {});
  memos_.assign(kMemos, {});
  slots_.assign(std::size_t{1} << kFirstSlotBits, {});
  mask_ = slots_.size() - 1;
  shift_ = 64 - kFirstSlotBits;
}

Leg* FlowGraph::make(TraceeAddr address) {
  Leg& leg = legs_.emplace_back();
  leg.begin = address;
  if (legs_.size() > slots_.size() / 2) {
    const std::vector<Slot> old = std::exchange(slots_, {});
    slots_.resize(old.size() * 2);
    mask_ = slots_.size() - 1;
    --shift_;
    for (const Slot& moved : old) {
      if (moved.leg != nullptr) insert(moved.leg);
    }
  }
  insert(&leg);
  return &leg;
}

void FlowGraph::insert(Leg* leg) {
  std::size_t slot = slot_of(leg->begin);
  while (slots_[slot & mask_].leg != nullptr) ++slot;
  slots_[slot & mask_] = {leg->begin, leg};
}

/// Adds an instruction to the edge. Returns true if it ends the edge.
bool FlowGraph::end_leg(Leg& leg, TraceeAddr pc, const arch::InsnFacts& facts) {
  const TraceeAddr behind = pc + facts.length;
  leg.last = pc;
  leg.last_length = facts.length;
  switch (facts.kind) {
    case arch::InsnKind::kOther:
      return false;
    case arch::InsnKind::kJump:
    case arch::InsnKind::kCall:
      if (leg.jumps != 0) break;
      leg.jumps = 1;
      leg.jump_from = pc;
      leg.jump_to = facts.target;
      // A call of the next instruction reads the pc; nothing returns to it.
      if (facts.kind == arch::InsnKind::kCall && facts.target != behind) {
        leg.calls = 1;
        leg.behind = at(behind);
      }
      return false;
    case arch::InsnKind::kConditionalJump:
      leg.next = {at(behind), at(facts.target)};
      leg.end = facts.target == behind ? LegEnd::kSameWay : LegEnd::kConditional;
      return true;
    case arch::InsnKind::kIndirectCall:
      if (leg.calls != 0) break;
      leg.behind = at(behind);
      leg.end = LegEnd::kIndirectCall;
      return true;
    case arch::InsnKind::kIndirectJump:
      leg.end = LegEnd::kIndirect;
      return true;
    case arch::InsnKind::kReturn:
      if (leg.calls != 0) break;
      leg.next = {&idle_leg(), &idle_leg()};  // The target is on the call stack.
      leg.end = LegEnd::kReturn;
      return true;
    case arch::InsnKind::kSystemCall:
    case arch::InsnKind::kFarTransfer:
      leg.end = LegEnd::kFar;
      return true;
  }
  // An edge holds one jump or call; what follows it is a new edge.
  leg.next[0] = leg.next[1] = at(leg.jump_to);
  leg.end = LegEnd::kContinue;
  return true;
}

void FlowGraph::walk(Leg& leg) {
  TraceeAddr pc = leg.begin;
  for (std::size_t n = 0; n < kMaxInsns; ++n) {
    const arch::InsnFacts& facts = insns_.at(pc);
    if (!facts.known()) break;
    const std::uint8_t jumps = leg.jumps;
    if (end_leg(leg, pc, facts)) {
      for (Leg*& next : leg.next) {
        if (next == nullptr) next = &leg;  // Never read before a TIP replaces it.
      }
      leg.in_lane = in_lane(leg);
      return;
    }
    pc = leg.jumps == jumps ? pc + facts.length : leg.jump_to;
  }
  leg.jumps = 0;
  leg.calls = 0;
  leg.end = LegEnd::kNowhere;
}

}  // namespace backtrail::decoder
