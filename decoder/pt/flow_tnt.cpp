// SPDX-License-Identifier: Apache-2.0
// Decodes TNT packets, whose bits state whether branches were taken: most of a trace.
#include <algorithm>
#include <bit>
#include <utility>

#include "decoder/pt/flow_decoder.hpp"
#include "decoder/pt/flow_limits.hpp"

namespace backtrail::decoder {
namespace {

/// Returns the oldest of `count` bits and decrements `count`.
std::uint64_t next_bit(std::uint64_t bits, unsigned& count) {
  --count;
  return bits >> (count % 64) & 1U;
}

}  // namespace

/// Records the effects of a packet's bits, for the next time that the packet occurs at the same
/// edge.
class FlowDecoder::MemoWriter {
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

/// Uses the pending TNT bits and those of the TNT packets that directly follow.
bool FlowDecoder::follow() {
  Edge* edge = edge_;
  Record* out = batch_.end();
  Record* known = out - held_;
  std::uint64_t bits = tnt_bits_;
  unsigned count = tnt_count_;
  unsigned jumps = 0;
  const std::uint8_t* at = packets_.data() + at_;
  const std::uint8_t* const end = packets_.data() + packets_.size();
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
      if (at == end || !is_tnt8(*at) || (yields_ && yields_at(at))) break;
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
  at_ = static_cast<std::size_t>(at - packets_.data());
  followed_ += followed;
  at_end_ = at_end;
  tnt_bits_ = bits;
  tnt_count_ = count;
  held_ = static_cast<unsigned>(out - known);
  batch_.set_end(out);
  return fits;
}

}  // namespace backtrail::decoder
