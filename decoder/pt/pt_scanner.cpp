// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_scanner.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace backtrail::decoder {
namespace {

constexpr std::array<std::string_view, kPtKinds> kNames{
    "pad",    "psb",   "psbend", "fup",  "tip", "tip.pge", "tip.pgd", "tnt.8",  "tnt.64", "mode",
    "pip",    "vmcs",  "cbr",    "tsc",  "tma", "mtc",     "cyc",     "stop",   "ovf",    "mnt",
    "exstop", "mwait", "pwre",   "pwrx", "ptw", "cfe",     "evd",     "unknown"};

constexpr std::array<std::uint8_t, 16> kPsb{0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                            0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

/// Reads at most eight bytes as a number.
std::uint64_t number(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min<std::size_t>(bytes.size(), sizeof value));
  return value;
}

/// Returns a packet of fixed size with an opcode of `opcode` bytes.
PtPacket fixed(PtKind kind, std::span<const std::uint8_t> bytes, std::uint8_t opcode,
               std::uint8_t size) {
  if (bytes.size() < size) return {};
  return {kind, size, 0, number(bytes.subspan(opcode, size - std::size_t{opcode}))};
}

PtPacket with_ip(PtKind kind, std::span<const std::uint8_t> bytes) {
  const auto form = static_cast<std::uint8_t>(bytes[0] >> 5U);
  const std::uint8_t count = PtLastIp::kBytes[form];
  if (count == 0xff || bytes.size() < count + 1U) return {};
  return {kind, static_cast<std::uint8_t>(count + 1), form, number(bytes.subspan(1, count))};
}

PtPacket cycles(std::span<const std::uint8_t> bytes) {
  // The first byte has 5 bits of the number, and bit 2 is set if more bytes follow. Those have 7
  // bits each, and bit 0 is set if more follow.
  bool more = (bytes[0] & 4U) != 0;
  std::uint64_t value = bytes[0] >> 3U;
  unsigned shift = 5;
  std::size_t size = 1;
  for (; more; ++size, shift += 7) {
    if (size == bytes.size() || size == 10) return {};
    more = (bytes[size] & 1U) != 0;
    if (shift < 64) value |= static_cast<std::uint64_t>(bytes[size] >> 1U) << shift;
  }
  return {PtKind::kCyc, static_cast<std::uint8_t>(size), 0, value};
}

PtPacket extended(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 2) return {};
  const std::uint8_t code = bytes[1];
  switch (code) {
    case 0x82:
      if (bytes.size() < kPsb.size() || !std::equal(kPsb.begin(), kPsb.end(), bytes.begin()))
        return {};
      return {PtKind::kPsb, kPsb.size(), 0, 0};
    case 0x23:
      return fixed(PtKind::kPsbEnd, bytes, 2, 2);
    case 0xf3:
      return fixed(PtKind::kOvf, bytes, 2, 2);
    case 0x83:
      return fixed(PtKind::kTraceStop, bytes, 2, 2);
    case 0xa3:
      return fixed(PtKind::kTnt64, bytes, 2, 8);
    case 0x43:
      return fixed(PtKind::kPip, bytes, 2, 8);
    case 0x03:
      return fixed(PtKind::kCbr, bytes, 2, 4);
    case 0x73:
      return fixed(PtKind::kTma, bytes, 2, 7);
    case 0xc8:
      return fixed(PtKind::kVmcs, bytes, 2, 7);
    case 0x62:
    case 0xe2:
      return fixed(PtKind::kExStop, bytes, 2, 2);
    case 0xc2:
      return fixed(PtKind::kMwait, bytes, 2, 10);
    case 0x22:
      return fixed(PtKind::kPwrE, bytes, 2, 4);
    case 0xa2:
      return fixed(PtKind::kPwrX, bytes, 2, 7);
    case 0x13:
      return fixed(PtKind::kCfe, bytes, 2, 4);
    case 0x53:
      return fixed(PtKind::kEvd, bytes, 2, 11);
    case 0xc3:
      if (bytes.size() < 3 || bytes[2] != 0x88) return {};
      return fixed(PtKind::kMnt, bytes, 3, 11);
    default:
      break;
  }
  if ((code & 0x1fU) == 0x12) {
    const unsigned form = (code >> 5U) & 3U;
    if (form < 2) return fixed(PtKind::kPtw, bytes, 2, form == 0 ? 6 : 10);
  }
  return {};
}

}  // namespace

std::string_view to_string(PtKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

PtPacket scan_packet(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return {};
  const std::uint8_t first = bytes[0];
  if (first == 0) return {PtKind::kPad, 1, 0, 0};
  if (first == 0x02) return extended(bytes);
  if ((first & 1U) == 0) {
    const auto bits = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(first)));
    return {PtKind::kTnt8, 1, 0, (first & ((1U << (bits - 1)) - 1)) >> 1U};
  }
  if ((first & 3U) == 3) return cycles(bytes);
  switch (first & 0x1fU) {
    case 0x0d:
      return with_ip(PtKind::kTip, bytes);
    case 0x11:
      return with_ip(PtKind::kTipPge, bytes);
    case 0x01:
      return with_ip(PtKind::kTipPgd, bytes);
    case 0x1d:
      return with_ip(PtKind::kFup, bytes);
    default:
      break;
  }
  if (first == 0x99) return fixed(PtKind::kMode, bytes, 1, 2);
  if (first == 0x19) return fixed(PtKind::kTsc, bytes, 1, 8);
  if (first == 0x59) return fixed(PtKind::kMtc, bytes, 1, 2);
  return {};
}

std::optional<std::size_t> find_psb(std::span<const std::uint8_t> bytes, std::size_t from) {
  const auto rest = bytes.subspan(std::min(from, bytes.size()));
  if (rest.size() < kPsb.size()) return std::nullopt;
  const void* const at = ::memmem(rest.data(), rest.size(), kPsb.data(), kPsb.size());
  if (at == nullptr) return std::nullopt;
  return static_cast<std::size_t>(static_cast<const std::uint8_t*>(at) - bytes.data());
}

PtCounts count_packets(std::span<const std::uint8_t> bytes) {
  PtCounts out;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t psb = find_psb(bytes, at).value_or(bytes.size());
    out.skipped_bytes += psb - at;
    for (at = psb; at < bytes.size();) {
      const PtPacket packet = scan_packet(bytes.subspan(at));
      if (packet.kind == PtKind::kUnknown) {
        ++out.errors;
        break;
      }
      ++out.packets[static_cast<std::size_t>(packet.kind)];
      at += packet.size;
    }
  }
  return out;
}

}  // namespace backtrail::decoder
