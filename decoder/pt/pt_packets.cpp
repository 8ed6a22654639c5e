// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_packets.hpp"

#include <algorithm>

namespace backtrail::decoder {
namespace {

/// Encodings of an address in a packet (the IPBytes field).
enum class IpForm : std::uint8_t {
  kUpdate16 = 1,    // 2 bytes; the upper ones come from the last address.
  kUpdate32 = 2,    // 4 bytes; the upper ones come from the last address.
  kSignExtend = 3,  // 6 bytes, sign-extended.
  kFull = 6,        // 8 bytes.
};

constexpr std::size_t kMaxPacketBytes = 16;

/// Sign-extends a 48-bit address.
constexpr std::uint64_t sign_extend48(std::uint64_t ip) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(ip << 16U) >> 16);
}

}  // namespace

void PacketWriter::grow(std::size_t bytes) {
  const std::size_t spare = std::clamp<std::size_t>(used_ / 2, 256, 65'536);
  out_.resize(used_ + bytes + spare);
}

void PacketWriter::put(std::initializer_list<std::uint8_t> bytes) {
  flush();
  room(bytes.size());
  for (const std::uint8_t byte : bytes) out_[used_++] = byte;
}

void PacketWriter::put_ip(std::uint8_t opcode, TraceeAddr ip) {
  flush();
  room(kMaxPacketBytes);
  const std::uint64_t value = ip.value();
  const std::uint64_t changed = state_.has_last_ip ? value ^ state_.last_ip : ~std::uint64_t{0};
  IpForm form = IpForm::kFull;
  std::size_t bytes = 8;
  if (changed >> 16U == 0) {
    form = IpForm::kUpdate16;
    bytes = 2;
  } else if (changed >> 32U == 0) {
    form = IpForm::kUpdate32;
    bytes = 4;
  } else if (sign_extend48(value) == value) {
    form = IpForm::kSignExtend;
    bytes = 6;
  }
  out_[used_++] = static_cast<std::uint8_t>(opcode | static_cast<unsigned>(form) << 5U);
  // Stores all 8 bytes at once; only the first `bytes` count.
  for (std::size_t i = 0; i < 8; ++i) {
    out_[used_ + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  used_ += bytes;
  state_.last_ip = value;
  state_.has_last_ip = true;
}

void PacketWriter::psb() {
  static constexpr int kRepeats = 8;
  for (int i = 0; i < kRepeats; ++i) put({0x02, 0x82});
  state_.has_last_ip = false;
}

void PacketWriter::ovf() {
  put({0x02, 0xf3});
  state_.has_last_ip = false;
}

}  // namespace backtrail::decoder
