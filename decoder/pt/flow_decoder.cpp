// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/flow_decoder.hpp"

#include <bit>
#include <utility>

#include "arch/base/bytes.hpp"
#include "decoder/pt/flow_limits.hpp"

namespace backtrail::decoder {
namespace {

using enum PtPlace::Kind;

constexpr std::size_t kPsbBytes = 16;

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
  walk_.reset();
  mode_known_ = false;
  fup_.reset();
  may_tma_ = false;
  checkpoint_ = {offset, place, batch_.position()};
  yields_ = true;
}

TntBytes FlowDecoder::tnt_bytes() const {
  const std::uint8_t* const data = packets_.data();
  return {.at = data + at_,
          .end = data + packets_.size(),
          .yields_after = yields_ ? data + from_ : nullptr};
}

bool FlowDecoder::follow() {
  TntBytes bytes = tnt_bytes();
  const bool fits = walk_.follow(bytes);
  at_ = static_cast<std::size_t>(bytes.at - packets_.data());
  ready_ = bytes.ready;
  return fits;
}

FlowDecoder::Progress FlowDecoder::advance() {
  ready_ = false;
  from_ = at_;
  bool fits = true;
  if (!walk_.bits_used() && !walk_.at_end()) {
    from_ = packets_.size();
    fits = follow();
  }
  if (fits && !ready_) fits = follow_packets();
  if (fits) return ready_ ? Progress::kReady : Progress::kDone;
  give_up();
  return Progress::kFailed;
}

void FlowDecoder::lend(FlowLane& lane) {
  lane = {};
  walk_.lend(lane);
  lane.at = packets_.data() + at_;
  lane.end = packets_.data() + packets_.size();
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
  lane.edge = walk_.target(*lane.edge, TraceeAddr{*to});
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
  walk_.take_back(lane, rest);
}

/// Drops the held record if its target is unreadable: nothing was executed there.
void FlowDecoder::give_up() {
  if (walk_.held() != 0 && on() && !walk_.can_run()) batch_.truncate(walk_.held());
}

/// Returns true if the TNT packets that follow may be decoded in lanes.
bool FlowDecoder::yields() {
  TntBytes bytes = tnt_bytes();
  ready_ = walk_.yields_at(bytes, bytes.at);
  return ready_;
}

bool FlowDecoder::follow_packets() {
  while (at_ < packets_.size()) {
    const std::uint8_t byte = packets_[at_];
    if (is_tnt8(byte)) {
      if (!on() || !settled()) return false;
      if (yields()) return true;
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
  walk_.drop_held();
  place_ = {kAt, GapReason::kNone, walk_.edge_begin(), {}};
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

bool FlowDecoder::tip(TraceeAddr to) {
  if (!on()) return false;
  if (fup_) {
    if (!walk_.walk_to(*fup_)) return false;
    batch_.push(async_transfer(*fup_, to));
    walk_.put(to, 0);
    fup_.reset();
    return true;
  }
  return walk_.take_tip(to) && (walk_.bits_used() || follow());
}

/// Tracing is on with execution at `at`.
void FlowDecoder::begin(TraceeAddr at) {
  PtPlace place = place_;
  const auto record = place.arrive(at, graph_.insns());
  if (record) batch_.push(*record);
  walk_.put(at, record ? 1 : 0);
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
      walk_.add_bits(packet.payload, static_cast<unsigned>(std::bit_width(packet.payload)) - 1);
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
      fits = is_aside(packet) && (packet.kind != PtKind::kCbr || walk_.bits_used());
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
  if (!on() || !settled() || walk_.at_end()) return false;
  const auto at = last_ip_.update(packet);
  if (!at) return false;
  fup_ = TraceeAddr{*at};
  return true;
}

bool FlowDecoder::tip_pge(const PtPacket& packet) {
  const auto at = last_ip_.update(packet);
  if (on() || !mode_known_ || !at) return false;
  if (const auto record = place_.arrive(TraceeAddr{*at}, graph_.insns())) batch_.push(*record);
  walk_.put(TraceeAddr{*at}, 0);
  return true;
}

bool FlowDecoder::tip_pgd(const PtPacket& packet) {
  const auto to = last_ip_.update(packet);
  if (!on() || !walk_.bits_used()) return false;
  if (fup_) {
    if (!walk_.walk_to(*fup_)) return false;
    place_ = {kStopped, GapReason::kNone, *fup_, {}};
    fup_.reset();
  } else {
    // With an address, it is not the next branch that left the traced code.
    const auto last = to ? std::nullopt : walk_.go_to_branch();
    if (!last) return false;
    place_ = {kLeft, GapReason::kNone, {}, *last};
  }
  walk_.confirm_held();
  walk_.leave();
  return true;
}

bool FlowDecoder::ovf() {
  if (errata_.overflow || !settled() || walk_.at_end()) return false;
  at_ += 2;
  if (on()) {
    // If nothing is known to have run since the last gap, that gap remains.
    const bool unknown = walk_.held() != 0 && batch_.back().kind == RecordKind::kGap;
    walk_.drop_held();
    if (!unknown) place_ = {kUnknown, GapReason::kOverflow, {}, {}};
  } else {
    place_.interrupted_by(GapReason::kOverflow);
  }
  walk_.confirm_held();
  walk_.leave();
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
  if (!settled() || walk_.at_end()) return false;
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
    if (!walk_.walk_to(*said->at)) return false;
    walk_.put(*said->at, walk_.held());
    place = {kAt, GapReason::kNone, *said->at, {}};
    if (walk_.held() != 0) {
      const Record& newest = batch_.back();
      place = newest.kind == RecordKind::kGap ? PtPlace{kUnknown, newest.reason, {}, {}}
                                              : PtPlace{kBehind, GapReason::kNone, {}, newest.from};
    }
  } else if (said->at) {
    return false;
  }
  batch_.hand_on(walk_.held());
  checkpoint_ = {offset, place, batch_.position() - walk_.held()};
  if (!stop_ || offset < *stop_) return true;
  place_ = place;
  stopped_ = true;
  return on() && offset == *stop_;
}

}  // namespace backtrail::decoder
