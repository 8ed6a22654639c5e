#include "decoder/pt/pt_raw_history.hpp"

#include <algorithm>
#include <array>

#include "decoder/pt/pt_scanner.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::array<std::uint8_t, 2> kOvf{0x02, 0xf3};

/// Where the last whole packet ends; `bytes` begin anywhere.
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
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  // Twice the size before anything moves, so that a byte is moved once on average.
  if (bytes_.size() <= 2 * size_bytes_) return;
  const std::size_t surplus = bytes_.size() - size_bytes_;
  const std::size_t keep = find_psb(bytes_, surplus).value_or(surplus);
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(keep));
  dropped_ += keep;
}

void PtRawHistory::hole() {
  ++holes_;
  unread_ = true;
  bytes_.resize(whole_packets(bytes_));
  if (!bytes_.empty()) bytes_.insert(bytes_.end(), kOvf.begin(), kOvf.end());
}

void PtRawHistory::clear() {
  bytes_.clear();
  unread_ = true;
}

std::vector<std::uint8_t> PtRawHistory::read_all() {
  unread_ = false;
  const std::size_t surplus = bytes_.size() > size_bytes_ ? bytes_.size() - size_bytes_ : 0;
  auto begin = find_psb(bytes_, surplus);
  // Fewer PSBs than the size asks for: the last one that there is.
  if (!begin) begin = find_psb(bytes_);
  if (!begin) return {};
  return {bytes_.begin() + static_cast<std::ptrdiff_t>(*begin), bytes_.end()};
}

}  // namespace backtrail::decoder
