// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/flow_walk.hpp"

#include <algorithm>
#include <bit>

#include "decoder/pt/flow_limits.hpp"

namespace backtrail::decoder {
namespace {

/// Returns the oldest of `count` bits and decrements `count`.
std::uint64_t next_bit(std::uint64_t bits, unsigned& count) {
  --count;
  return bits >> (count % 64) & 1U;
}

/// Records the effects of a packet's bits, for the next time that the packet occurs at the same
/// edge.
class MemoWriter {
 public:
  /// Begins a packet. `memo` is its slot, which may have another owner.
  void begin(TntWay& way, TntMemo& memo, std::uint64_t packet_at, const Record* out) {
    memo_ = nullptr;
    if (memo.packet_at == packet_at) {
      if (way.packet_at == packet_at && memo.returned_to == nullptr) return;
    } else if (memo.tries != 0) {
      --memo.tries;
      return;
    } else {
      memo.packet_at = packet_at;
      way.packet_at = 0;
      return;
    }
    way_ = &way;
    memo_ = &memo;
    begin_ = out;
    operations_ = 0;
    returned_to_ = nullptr;
    called_from_ = nullptr;
  }
  void calls(Edge* behind, unsigned count) {
    if (count == 0) return;
    operations_ = operations_ << 2U | kCall;
    called_from_ = behind;
  }
  void returns(Edge* to) {
    operations_ = operations_ << 2U | kReturn;
    returned_to_ = to;
  }
  /// Ends the packet: no bit is left, and execution is at `to`.
  void end(Edge* to, const Record* known, const Record* out) {
    if (memo_ == nullptr) return;
    TntMemo& memo = *std::exchange(memo_, nullptr);
    const auto count = static_cast<std::size_t>(out - begin_);
    const bool plain = operations_ == 0 || operations_ == kCall || operations_ == kReturn ||
                       operations_ == (kReturn << 2U | kCall);
    if (!plain || count > TntMemo::kMaxRecords) return;
    *way_ = {memo.packet_at, to};
    memo.returned_to = returned_to_;
    memo.called_from = called_from_;
    memo.calls = called_from_ == nullptr ? 0 : 1;
    memo.held = static_cast<std::uint8_t>(out - known);
    memo.count = static_cast<std::uint8_t>(count);
    std::copy_n(begin_, count, memo.records.begin());
    memo.tries = 3;
  }
  /// Discards the packet, for example because the records have moved.
  void cancel() { memo_ = nullptr; }

 private:
  static constexpr unsigned kCall = 1;
  static constexpr unsigned kReturn = 2;

  TntWay* way_ = nullptr;
  TntMemo* memo_ = nullptr;
  const Record* begin_ = nullptr;
  /// Call stack operations, two bits each, the newest in the lowest position.
  unsigned operations_ = 0;
  Edge* returned_to_ = nullptr;
  Edge* called_from_ = nullptr;
};

/// Most instructions between the last branch and the address of a packet.
constexpr unsigned kMaxSteps = 1U << 16U;

}  // namespace

void FlowWalk::reset() {
  leave();
  tnt_count_ = 0;
  held_ = 0;
  stack_.clear();
}

void FlowWalk::put(TraceeAddr at, unsigned held) {
  edge_ = graph_.at(at);
  at_end_ = false;
  held_ = held;
}

/// Out of line: it is rarely called, and the loop that calls it is the hottest of the decoder.
[[gnu::noinline]] bool FlowWalk::yields_at(TntBytes& bytes, const std::uint8_t* at) const {
  if (bytes.yields_after == nullptr || at == bytes.yields_after || !stack_.can_lend()) return false;
  bytes.ready = is_full_tnt8(*at) && bytes.end - at > FlowLane::kLookAhead;
  return bytes.ready;
}

bool FlowWalk::follow(TntBytes& bytes) {
  Edge* edge = edge_;
  Record* out = batch_.end();
  Record* known = out - held_;
  std::uint64_t bits = tnt_bits_;
  unsigned count = tnt_count_;
  unsigned jumps = 0;
  const std::uint8_t* at = bytes.at;
  const std::uint8_t* const end = bytes.end;
  const bool may_yield = bytes.yields_after != nullptr;
  std::size_t followed = 0;
  bool at_end = at_end_;
  bool fits = true;
  MemoWriter writer;
  const auto make_room = [&] {
    const auto held = out - known;
    batch_.set_end(out);
    out = batch_.end();
    known = out - held;
    writer.cancel();
  };
  for (;;) {
    if (count == 0) {
      writer.end(edge, known, out);
      if (at == end || !is_tnt8(*at) || (may_yield && yields_at(bytes, at))) break;
      const std::uint8_t byte = *at++;
      const std::size_t slot = FlowGraph::memo_slot(edge, byte);
      const std::uint64_t packet_at = FlowGraph::packet_at(edge, byte);
      TntWay& way = graph_.way(slot);
      TntMemo& memo = graph_.memo(slot);
      if (way.packet_at == packet_at &&
          (memo.returned_to == nullptr || stack_.newest() == memo.returned_to)) {
        if (memo.returned_to != nullptr) stack_.pop();
        stack_.push(memo.called_from, memo.calls);
        out = memo.repeat(out);
        known = out - memo.held;
        edge = way.to;
        if (batch_.lacks_room(out)) make_room();
        continue;
      }
      ++followed;
      writer.begin(way, memo, packet_at, out);
      count = static_cast<unsigned>(std::bit_width(byte)) - 2;
      bits = byte >> 1U;
      jumps = 0;
    }
    if (!at_end) {
      put_branch(out, edge->jump_from, edge->jump_to);
      out += edge->jumps;
      stack_.push(edge->behind, edge->calls);
      writer.calls(edge->behind, edge->calls);
    }
    at_end = false;
    if (edge->end == EdgeEnd::kConditional) [[likely]] {
      const std::uint64_t bit = next_bit(bits, count);
      known = out;
      Edge* const next = edge->next[bit];
      put_branch(out, edge->last, next->begin);
      out += bit;
      edge = next;
    } else if (edge->end == EdgeEnd::kReturn) {
      if (next_bit(bits, count) == 0 || stack_.empty()) {
        fits = false;
        break;
      }
      known = out;
      Edge* const next = stack_.pop();
      writer.returns(next);
      put_branch(out++, edge->last, next->begin);
      edge = next;
    } else if (edge->end == EdgeEnd::kUnwalked) {
      graph_.walk(*edge);
      continue;
    } else if (edge->end == EdgeEnd::kContinue) {
      edge = edge->next[0];
      if (++jumps > kMaxDirectJumps) {
        fits = false;
        break;
      }
    } else if (edge->end == EdgeEnd::kSameWay) {
      --count;
      known = out;
      edge = edge->next[0];
    } else {
      // A TIP is needed. CPUs may write the TNT bits of later branches before it.
      fits = edge->end != EdgeEnd::kNowhere;
      if (fits) known = out;
      at_end = true;
      break;
    }
    if (batch_.lacks_room(out)) make_room();
  }
  edge_ = edge;
  bytes.at = at;
  followed_ += followed;
  at_end_ = at_end;
  tnt_bits_ = bits;
  tnt_count_ = count;
  held_ = static_cast<unsigned>(out - known);
  batch_.set_end(out);
  return fits;
}

/// Follows the direct jumps of the edge. Returns true if a packet decides at its end.
bool FlowWalk::go_to_end_of_edge() {
  for (unsigned jumps = 0; !at_end_; ++jumps) {
    if (edge_->end == EdgeEnd::kUnwalked) graph_.walk(*edge_);
    if (edge_->end == EdgeEnd::kNowhere || jumps > kMaxDirectJumps) return false;
    if (edge_->jumps != 0) batch_.push(branch(edge_->jump_from, edge_->jump_to));
    stack_.push(edge_->behind, edge_->calls);
    if (edge_->end == EdgeEnd::kContinue) {
      edge_ = edge_->next[0];
    } else {
      at_end_ = true;
    }
  }
  held_ = 0;
  return true;
}

bool FlowWalk::take_tip(TraceeAddr to) {
  if (!go_to_end_of_edge()) return false;
  switch (edge_->end) {
    case EdgeEnd::kIndirectCall:
      stack_.push(edge_->behind);
      break;
    case EdgeEnd::kIndirect:
    case EdgeEnd::kReturn:
    case EdgeEnd::kFar:
      break;
    default:
      return false;
  }
  const bool came_back = edge_->end == EdgeEnd::kFar && to == edge_->after_last();
  held_ = came_back ? 0 : 1;
  if (!came_back) batch_.push(branch(edge_->last, to));
  at_end_ = false;
  edge_ = edge_->end == EdgeEnd::kReturn ? graph_.at(to) : target(*edge_, to);
  return true;
}

std::optional<TraceeAddr> FlowWalk::go_to_branch() {
  if (!go_to_end_of_edge()) return std::nullopt;
  if (edge_->end == EdgeEnd::kIndirectCall) stack_.push(edge_->behind);
  return edge_->last;
}

bool FlowWalk::walk_to(TraceeAddr stop) {
  if (tnt_count_ != 0 || at_end_) return false;
  TraceeAddr pc = edge_->begin;
  for (unsigned steps = 0; pc != stop; ++steps) {
    const arch::InsnFacts& insn = graph_.insns().at(pc);
    const TraceeAddr behind = pc + insn.length;
    if (!insn.known() || steps > kMaxSteps) return false;
    switch (insn.kind) {
      case arch::InsnKind::kOther:
        pc = behind;
        held_ = 0;
        break;
      case arch::InsnKind::kCall:
        if (insn.target != behind) stack_.push(graph_.at(behind));
        [[fallthrough]];
      case arch::InsnKind::kJump:
        batch_.push(branch(pc, insn.target));
        pc = insn.target;
        held_ = 1;
        break;
      default:
        return false;
    }
  }
  return true;
}

void FlowWalk::lend(FlowLane& lane) {
  lane.edge = edge_;
  lane.out = batch_.end();
  lane.stack = stack_.lend();
  lane.full = batch_.full();
}

void FlowWalk::take_back(const FlowLane& lane, unsigned unused) {
  tnt_count_ = unused;
  tnt_bits_ = unused == 0 ? 0 : lane.bits >> (64 - unused);
  edge_ = lane.edge;
  held_ = 0;  // The next bit sets it.
  stack_.take_back(lane.stack);
  batch_.set_end(lane.out);
}

}  // namespace backtrail::decoder
