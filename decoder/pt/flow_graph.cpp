// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/flow_graph.hpp"

#include <utility>

#include "decoder/pt/edge_stack.hpp"

namespace backtrail::decoder {
namespace {

constexpr unsigned kFirstSlotBits = 10;
/// Bound of 128 MiB.
constexpr std::size_t kMaxEdges = std::size_t{1} << 21U;
/// A longer run without a branch is not code.
constexpr std::size_t kMaxInsns = std::size_t{1} << 16U;

Edge::InLane in_lane(const Edge& edge) {
  if (edge.end > EdgeEnd::kContinue) return {};
  const bool returns = edge.end == EdgeEnd::kReturn;
  return {.returns = static_cast<std::uint8_t>(returns ? 1 : 0),
          .jumps = edge.jumps,
          .bits = static_cast<std::uint8_t>(edge.end == EdgeEnd::kContinue ? 0 : 1),
          .depth = static_cast<std::int8_t>(returns ? -1 : edge.calls)};
}

}  // namespace

Edge& idle_edge() {
  static Edge* const edge = [] {
    static Edge made;
    made.next = {&made, &made};
    made.end = EdgeEnd::kNowhere;
    return &made;
  }();
  return *edge;
}

FlowGraph::FlowGraph(CodeReader& code) : pages_{code} {
  forget();
}

void FlowGraph::refresh() {
  if (!pages_.unchanged() || edges_.size() > kMaxEdges) forget();
}

void FlowGraph::forget() {
  insns_.invalidate_all();
  edges_.clear();
  ways_.assign(kMemos, {});
  memos_.assign(kMemos, {});
  slots_.assign(std::size_t{1} << kFirstSlotBits, {});
  mask_ = slots_.size() - 1;
  shift_ = 64 - kFirstSlotBits;
}

Edge* FlowGraph::make(TraceeAddr address) {
  Edge& edge = edges_.emplace_back();
  edge.begin = address;
  if (edges_.size() > slots_.size() / 2) {
    const std::vector<Slot> old = std::exchange(slots_, {});
    slots_.resize(old.size() * 2);
    mask_ = slots_.size() - 1;
    --shift_;
    for (const Slot& moved : old) {
      if (moved.edge != nullptr) insert(moved.edge);
    }
  }
  insert(&edge);
  return &edge;
}

void FlowGraph::insert(Edge* edge) {
  std::size_t slot = slot_of(edge->begin);
  while (slots_[slot & mask_].edge != nullptr) ++slot;
  slots_[slot & mask_] = {edge->begin, edge};
}

/// Adds an instruction to the edge. Returns true if it ends the edge.
bool FlowGraph::end_edge(Edge& edge, TraceeAddr pc, const arch::InsnFacts& facts) {
  const TraceeAddr behind = pc + facts.length;
  edge.last = pc;
  edge.last_length = facts.length;
  switch (facts.kind) {
    case arch::InsnKind::kOther:
      return false;
    case arch::InsnKind::kJump:
    case arch::InsnKind::kCall:
      if (edge.jumps != 0) break;
      edge.jumps = 1;
      edge.jump_from = pc;
      edge.jump_to = facts.target;
      // A call of the next instruction reads the pc; nothing returns to it.
      if (facts.kind == arch::InsnKind::kCall && facts.target != behind) {
        edge.calls = 1;
        edge.behind = at(behind);
      }
      return false;
    case arch::InsnKind::kConditionalJump:
      edge.next = {at(behind), at(facts.target)};
      edge.end = facts.target == behind ? EdgeEnd::kSameWay : EdgeEnd::kConditional;
      return true;
    case arch::InsnKind::kIndirectCall:
      if (edge.calls != 0) break;
      edge.behind = at(behind);
      edge.end = EdgeEnd::kIndirectCall;
      return true;
    case arch::InsnKind::kIndirectJump:
      edge.end = EdgeEnd::kIndirect;
      return true;
    case arch::InsnKind::kReturn:
      if (edge.calls != 0) break;
      edge.next = {&idle_edge(), &idle_edge()};  // The target is on the call stack.
      edge.end = EdgeEnd::kReturn;
      return true;
    case arch::InsnKind::kSystemCall:
    case arch::InsnKind::kFarTransfer:
      edge.end = EdgeEnd::kFar;
      return true;
  }
  // An edge holds one jump or call; what follows it is a new edge.
  edge.next[0] = edge.next[1] = at(edge.jump_to);
  edge.end = EdgeEnd::kContinue;
  return true;
}

void FlowGraph::walk(Edge& edge) {
  TraceeAddr pc = edge.begin;
  for (std::size_t n = 0; n < kMaxInsns; ++n) {
    const arch::InsnFacts& facts = insns_.at(pc);
    if (!facts.known()) break;
    const std::uint8_t jumps = edge.jumps;
    if (end_edge(edge, pc, facts)) {
      for (Edge*& next : edge.next) {
        if (next == nullptr) next = &edge;  // Never read before a TIP replaces it.
      }
      edge.in_lane = in_lane(edge);
      return;
    }
    pc = edge.jumps == jumps ? pc + facts.length : edge.jump_to;
  }
  edge.jumps = 0;
  edge.calls = 0;
  edge.end = EdgeEnd::kNowhere;
}

}  // namespace backtrail::decoder
