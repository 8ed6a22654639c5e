// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_raw_history.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "decoder/pt/pt_scanner.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::array<std::uint8_t, 2> kOvf{0x02, 0xf3};
/// No valid packet: decoders give up here, perhaps at the previous packet, and resume at the next
/// PSB.
constexpr std::array<std::uint8_t, 2> kBreak{0x02, 0x00};

/// Returns the mark for missing bytes. After an OVF decoders expect the place where tracing
/// resumed, which follows if tracing was off. In running code they must resynchronise.
std::span<const std::uint8_t> mark_before(std::span<const std::uint8_t> bytes) {
  bool in_psb = false;
  for (std::size_t at = 0; at < bytes.size();) {
    const PtPacket packet = scan_packet(bytes.subspan(at));
    switch (packet.kind) {
      case PtKind::kTipPge:
        return kOvf;
      case PtKind::kPsb:
        in_psb = true;
        break;
      case PtKind::kPsbEnd:
        return kOvf;  // Without an address, tracing was off.
      case PtKind::kFup:
        if (in_psb) return kBreak;
        return kOvf;
      case PtKind::kPad:
      case PtKind::kMode:
      case PtKind::kPip:
      case PtKind::kVmcs:
      case PtKind::kCbr:
      case PtKind::kTsc:
      case PtKind::kTma:
      case PtKind::kMtc:
      case PtKind::kCyc:
        break;
      default:
        return kBreak;
    }
    at += packet.size;
  }
  return kOvf;
}

/// Returns the end of the last whole packet; `bytes` may begin in the middle of one.
std::size_t whole_packets(std::span<const std::uint8_t> bytes) {
  std::size_t sync = bytes.size();
  for (auto next = find_psb(bytes); next; next = find_psb(bytes, *next + 16)) sync = *next;
  std::size_t at = sync;
  while (at < bytes.size()) {
    const PtPacket packet = scan_packet(bytes.subspan(at));
    if (packet.kind == PtKind::kUnknown) break;
    at += packet.size;
  }
  return at;
}

}  // namespace

void PtRawHistory::append(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  unread_ = true;
  if (std::exchange(hole_, false) && !bytes_.empty()) {
    const auto mark = mark_before(bytes);
    bytes_.insert(bytes_.end(), mark.begin(), mark.end());
  }
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  // Grows to twice the size before moving, so that a byte moves once on average.
  if (bytes_.size() <= 2 * size_bytes_) return;
  const std::size_t surplus = bytes_.size() - size_bytes_;
  const std::size_t keep = find_psb(bytes_, surplus).value_or(surplus);
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(keep));
  dropped_ += keep;
}

void PtRawHistory::hole() {
  unread_ = true;
  if (!std::exchange(hole_, true)) bytes_.resize(whole_packets(bytes_));
}

void PtRawHistory::clear() {
  bytes_.clear();
  hole_ = false;
  unread_ = true;
}

std::vector<std::uint8_t> PtRawHistory::read_all() {
  unread_ = false;
  const std::size_t surplus = bytes_.size() > size_bytes_ ? bytes_.size() - size_bytes_ : 0;
  auto begin = find_psb(bytes_, surplus);
  // If no PSB is new enough, begins at the last one.
  if (!begin) begin = find_psb(bytes_);
  if (!begin) return {};
  std::vector<std::uint8_t> out{bytes_.begin() + static_cast<std::ptrdiff_t>(*begin), bytes_.end()};
  if (hole_) out.insert(out.end(), kOvf.begin(), kOvf.end());
  return out;
}

}  // namespace backtrail::decoder
