// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/flow_decoder.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "arch/base/bytes.hpp"
#include "decoder/pt/flow_limits.hpp"

namespace backtrail::decoder {
namespace {

using enum PtPlace::Kind;

constexpr std::size_t kPsbBytes = 16;
/// Most instructions between the last branch and the address of a packet.
constexpr unsigned kMaxSteps = 1U << 16U;

}  // namespace

bool FlowDecoder::run(std::size_t offset, const PtPlace& place, std::optional<std::size_t> stop) {
  start(offset, place, stop);
  stay();
  return advance() == Progress::kDone;
}

void FlowDecoder::start(std::size_t offset, const PtPlace& place, std::optional<std::size_t> stop) {
  at_ = offset;
  stop_ = stop;
  stopped_ = false;
  place_ = place;
  edge_ = nullptr;
  at_end_ = false;
  mode_known_ = false;
  tnt_count_ = 0;
  fup_.reset();
  may_tma_ = false;
  held_ = 0;
  stack_.clear();
  checkpoint_ = {offset, place, batch_.position()};
  yields_ = true;
}

FlowDecoder::Progress FlowDecoder::advance() {
  ready_ = false;
  from_ = at_;
  bool fits = true;
  if (tnt_count_ != 0 && !at_end_) {
    from_ = packets_.size();
    fits = follow();
  }
  if (fits && !ready_) fits = follow_packets();
  if (fits) return ready_ ? Progress::kReady : Progress::kDone;
  give_up();
  return Progress::kFailed;
}

/// Returns true if the TNT packets that follow may be decoded in lanes.
bool FlowDecoder::yields_at(const std::uint8_t* at) {
  if (at == packets_.data() + from_ || !stack_.can_lend()) return false;
  const auto rest = packets_.data() + packets_.size() - at;
  ready_ = is_full_tnt8(*at) && rest > FlowLane::kLookAhead;
  return ready_;
}

void FlowDecoder::lend(FlowLane& lane) {
  lane = {.edge = edge_,
          .out = batch_.end(),
          .stack = stack_.lend(),
          .full = batch_.full(),
          .at = packets_.data() + at_,
          .end = packets_.data() + packets_.size(),
          .mark = {}};
  lane.set_mark();
}

bool FlowDecoder::tip_in(FlowLane& lane) {
  const Edge* edge = lane.edge;
  const bool call = edge->end == EdgeEnd::kIndirectCall;
  if (lane.count() != 0 || !(call || edge->end == EdgeEnd::kIndirect)) return false;
  if (lane.end - lane.at <= FlowLane::kLookAhead || (*lane.at & 0x1fU) != 0x0d) return false;
  const unsigned form = *lane.at >> 5U;
  const std::uint8_t* const behind = lane.at + 1 + PtLastIp::kBytes[form];
  // The first bit after it confirms that the branch was executed.
  if (lane.end - behind <= FlowLane::kLookAhead || !is_tnt8(*behind)) return false;
  const auto to = last_ip_.update(form, load_le<std::uint64_t>(lane.at + 1));
  if (!to) return false;
  put_branch(lane.out, edge->jump_from, edge->jump_to);
  lane.out += edge->jumps;
  put_branch(lane.out++, edge->last, TraceeAddr{*to});
  *lane.stack.top = edge->behind;
  lane.stack.top += edge->calls + (call ? 1 : 0);
  lane.edge = target(*lane.edge, TraceeAddr{*to});
  lane.at = behind;
  lane.set_mark();
  return true;
}

void FlowDecoder::take_back(FlowLane& lane) {
  if (lane.count() == 0) lane.go_back();
  // Packets whose bits are all unused are returned whole.
  unsigned rest = lane.count();
  for (; rest != 0 && rest >= tnt8_bits(lane.at[-1]); --lane.at) rest -= tnt8_bits(lane.at[-1]);
  at_ = static_cast<std::size_t>(lane.at - packets_.data());
  tnt_count_ = rest;
  tnt_bits_ = rest == 0 ? 0 : lane.bits >> (64 - rest);
  edge_ = lane.edge;
  held_ = 0;  // The next bit sets it.
  stack_.take_back(lane.stack);
  batch_.set_end(lane.out);
}

/// Drops the held record if its target is unreadable: nothing was executed there.
void FlowDecoder::give_up() {
  if (held_ == 0 || !on()) return;
  if (!graph_.insns().at(edge_->begin).known()) batch_.truncate(held_);
}

bool FlowDecoder::follow_packets() {
  while (at_ < packets_.size()) {
    const std::uint8_t byte = packets_[at_];
    if (is_tnt8(byte)) {
      if (!on() || !settled()) return false;
      if (yields_ && yields_at(&packets_[at_])) return true;
      if (!follow()) return false;
    } else if (byte == 0) {
      ++at_;
    } else if ((byte & 0x1fU) == 0x0d && packets_.size() - at_ > sizeof(std::uint64_t)) {
      const auto to = last_ip_.update(byte >> 5U, load_le<std::uint64_t>(&packets_[at_ + 1]));
      if (!to) return false;
      at_ += 1 + std::size_t{PtLastIp::kBytes[byte >> 5U]};
      if (!tip(TraceeAddr{*to})) return false;
    } else if (!packet()) {
      return false;
    }
    if (stopped_ || ready_) return true;
  }
  end();
  return !stop_;
}

void FlowDecoder::end() {
  if (!on()) return;
  batch_.truncate(std::exchange(held_, 0));
  place_ = {kAt, GapReason::kNone, edge_->begin, {}};
}

/// Returns true for timing packets, which do not affect the position, at a place where they may
/// occur.
bool FlowDecoder::is_aside(const PtPacket& packet) {
  switch (packet.kind) {
    case PtKind::kTsc:
      may_tma_ = true;
      return true;
    case PtKind::kTma:
      // The crystal clock's count is followed by a reserved byte; only 9 bits of the fast count may
      // be set.
      return std::exchange(may_tma_, false) && (packet.payload & 0xfe'00ff'0000U) == 0;
    case PtKind::kCbr:
      return (packet.payload & 0xffU) != 0;
    case PtKind::kPad:
    case PtKind::kMtc:
    case PtKind::kCyc:
      return true;
    default:
      return false;
  }
}

/// Follows the direct jumps of the edge. Returns true if a packet decides at its end.
bool FlowDecoder::go_to_end_of_edge() {
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

/// Takes the branch at the end of the edge to `to`.
void FlowDecoder::depart(TraceeAddr to) {
  const bool came_back = edge_->end == EdgeEnd::kFar && to == edge_->after_last();
  held_ = came_back ? 0 : 1;
  if (!came_back) batch_.push(branch(edge_->last, to));
  at_end_ = false;
  if (edge_->end == EdgeEnd::kReturn) {
    edge_ = graph_.at(to);
    return;
  }
  edge_ = target(*edge_, to);
}

/// Returns the edge that a TIP leads to; `edge` remembers the newest two.
Edge* FlowDecoder::target(Edge& edge, TraceeAddr to) {
  auto& [newest, older] = edge.next;
  if (newest->begin != to) {
    std::swap(newest, older);
    if (newest->begin != to) newest = graph_.at(to);
  }
  return newest;
}

bool FlowDecoder::tip(TraceeAddr to) {
  if (!on()) return false;
  if (fup_) {
    if (!walk_to(*fup_)) return false;
    held_ = 0;
    batch_.push(async_transfer(*fup_, to));
    edge_ = graph_.at(to);
    fup_.reset();
    return true;
  }
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
  depart(to);
  return tnt_count_ == 0 || follow();
}

/// Follows execution to `stop` without a packet. Returns false if it cannot get there.
bool FlowDecoder::walk_to(TraceeAddr stop) {
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

/// Tracing is on with execution at `at`.
void FlowDecoder::begin(TraceeAddr at) {
  PtPlace place = place_;
  const auto record = place.arrive(at, graph_.insns());
  if (record) batch_.push(*record);
  held_ = record ? 1 : 0;
  edge_ = graph_.at(at);
  at_end_ = false;
}

bool FlowDecoder::packet() {
  const PtPacket packet = scan();
  bool fits = false;
  switch (packet.kind) {
    case PtKind::kTip: {
      const auto to = last_ip_.update(packet);
      at_ += packet.size;
      return to && tip(TraceeAddr{*to});
    }
    case PtKind::kTnt64:
      if (!on() || !settled() || packet.payload <= 1) return false;
      tnt_bits_ = packet.payload;
      tnt_count_ = static_cast<unsigned>(std::bit_width(packet.payload)) - 1;
      at_ += packet.size;
      return follow();
    case PtKind::kPsb:
      return psb();
    case PtKind::kOvf:
      return ovf();
    case PtKind::kTipPge:
      fits = tip_pge(packet);
      break;
    case PtKind::kTipPgd:
      fits = tip_pgd(packet);
      break;
    case PtKind::kFup:
      fits = fup(packet);
      break;
    case PtKind::kMode:
      fits = mode(packet);
      break;
    default:
      // libipt treats a CBR as an event, which cannot occur while TNT bits are left.
      fits = is_aside(packet) && (packet.kind != PtKind::kCbr || tnt_count_ == 0);
      break;
  }
  at_ += packet.size;
  return fits;
}

bool FlowDecoder::mode_fits(const PtPacket& packet) const {
  // The upper three bits are the leaf: 0 is MODE.Exec. CS.D and CS.L follow.
  return packet.payload == (graph_.isa() == arch::Isa::kAmd64 ? 1U : 2U);
}

bool FlowDecoder::mode(const PtPacket& packet) {
  if (on() || !mode_fits(packet)) return false;
  mode_known_ = true;
  return true;
}

bool FlowDecoder::fup(const PtPacket& packet) {
  if (!on() || !settled() || at_end_) return false;
  const auto at = last_ip_.update(packet);
  if (!at) return false;
  fup_ = TraceeAddr{*at};
  return true;
}

bool FlowDecoder::tip_pge(const PtPacket& packet) {
  const auto at = last_ip_.update(packet);
  if (on() || !mode_known_ || !at) return false;
  if (const auto record = place_.arrive(TraceeAddr{*at}, graph_.insns())) batch_.push(*record);
  held_ = 0;
  edge_ = graph_.at(TraceeAddr{*at});
  return true;
}

bool FlowDecoder::tip_pgd(const PtPacket& packet) {
  const auto to = last_ip_.update(packet);
  if (!on() || tnt_count_ != 0) return false;
  if (fup_) {
    if (!walk_to(*fup_)) return false;
    held_ = 0;
    place_ = {kStopped, GapReason::kNone, *fup_, {}};
    fup_.reset();
  } else {
    // With an address, it is not the next branch that left the traced code.
    if (to || !go_to_end_of_edge()) return false;
    if (edge_->end == EdgeEnd::kIndirectCall) stack_.push(edge_->behind);
    place_ = {kLeft, GapReason::kNone, {}, edge_->last};
  }
  edge_ = nullptr;
  at_end_ = false;
  return true;
}

bool FlowDecoder::ovf() {
  if (errata_.overflow || !settled() || at_end_) return false;
  at_ += 2;
  if (on()) {
    batch_.truncate(held_);
    // If nothing is known to have run since the last gap, that gap remains.
    const bool unknown = held_ != 0 && batch_.end()->kind == RecordKind::kGap;
    if (!unknown) place_ = {kUnknown, GapReason::kOverflow, {}, {}};
  } else {
    place_.interrupted_by(GapReason::kOverflow);
  }
  held_ = 0;
  edge_ = nullptr;
  last_ip_.reset();
  for (; at_ < packets_.size(); at_ += scan().size) {
    const PtPacket packet = scan();
    if (is_aside(packet)) continue;
    switch (packet.kind) {
      case PtKind::kFup: {
        const auto at = last_ip_.update(packet);
        if (!at || !mode_known_) return false;
        at_ += packet.size;
        begin(TraceeAddr{*at});
        return true;
      }
      case PtKind::kTipPge:
      case PtKind::kPsb:
      case PtKind::kMode:
      case PtKind::kOvf:
        return true;  // Tracing was off when the overflow ended.
      default:
        return false;
    }
  }
  return true;
}

/// Returns true if the next relevant packet is a TIP.PGE.
bool FlowDecoder::tip_pge_follows() const {
  std::size_t at = at_;
  while (at < packets_.size()) {
    const PtPacket packet = scan_packet(packets_.subspan(at));
    switch (packet.kind) {
      case PtKind::kTipPge:
        return true;
      case PtKind::kPad:
      case PtKind::kTsc:
      case PtKind::kCbr:
      case PtKind::kPsbEnd:
      case PtKind::kPip:
      case PtKind::kMode:
      case PtKind::kVmcs:
      case PtKind::kTma:
      case PtKind::kMtc:
      case PtKind::kCyc:
      case PtKind::kMnt:
        break;
      default:
        return false;
    }
    at += packet.size;
  }
  return false;
}

std::optional<FlowDecoder::Header> FlowDecoder::header() {
  Header header;
  at_ += kPsbBytes;
  last_ip_.reset();
  for (;;) {
    const PtPacket packet = scan();
    at_ += packet.size;
    switch (packet.kind) {
      case PtKind::kPsbEnd:
        return header;
      case PtKind::kFup:
        if (errata_.bdm70 && !on() && tip_pge_follows()) break;
        if (const auto at = last_ip_.update(packet)) header.at = TraceeAddr{*at};
        break;
      case PtKind::kMode:
        if (packet.payload >> 5U == 1) break;  // MODE.TSX
        if (!mode_fits(packet)) return std::nullopt;
        header.mode = true;
        break;
      case PtKind::kPip:
      case PtKind::kVmcs:
        break;
      default:
        if (!is_aside(packet)) return std::nullopt;
        break;
    }
  }
}

bool FlowDecoder::psb() {
  if (!settled() || at_end_) return false;
  const bool first = at_ == checkpoint_.offset;
  const std::size_t offset = at_;
  const auto said = header();
  if (!said) return false;
  mode_known_ = mode_known_ || said->mode;
  if (first) {
    if (!said->at) return true;
    if (!mode_known_) return false;
    begin(*said->at);
    return true;
  }
  PtPlace place = place_;
  if (on()) {
    // Decoding cannot begin here without both.
    if (!said->at || !said->mode) return false;
    if (!walk_to(*said->at)) return false;
    edge_ = graph_.at(*said->at);
    place = {kAt, GapReason::kNone, *said->at, {}};
    if (held_ != 0) {
      const Record& newest = batch_.back();
      place = newest.kind == RecordKind::kGap ? PtPlace{kUnknown, newest.reason, {}, {}}
                                              : PtPlace{kBehind, GapReason::kNone, {}, newest.from};
    }
  } else if (said->at) {
    return false;
  }
  batch_.hand_on(held_);
  checkpoint_ = {offset, place, batch_.position() - held_};
  if (!stop_ || offset < *stop_) return true;
  place_ = place;
  stopped_ = true;
  return on() && offset == *stop_;
}

}  // namespace backtrail::decoder
