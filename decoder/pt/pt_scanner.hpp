// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Splits Intel PT bytes, as hardware writes them, into packets.
///
/// Source: SDM vol. 3, "Packet Definitions" of "Intel Processor Trace".

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace backtrail::decoder {

enum class PtKind : std::uint8_t {
  kPad,
  kPsb,
  kPsbEnd,
  kFup,
  kTip,
  kTipPge,
  kTipPgd,
  kTnt8,
  kTnt64,
  kMode,
  kPip,
  kVmcs,
  kCbr,
  kTsc,
  kTma,
  kMtc,
  kCyc,
  kTraceStop,
  kOvf,
  kMnt,
  kExStop,
  kMwait,
  kPwrE,
  kPwrX,
  kPtw,
  kCfe,
  kEvd,
  kUnknown,  ///< Bytes that begin no packet, or a packet cut off at the end.
};
inline constexpr std::size_t kPtKinds = static_cast<std::size_t>(PtKind::kUnknown) + 1;

/// Returns "psb", "tip.pge", ...
[[nodiscard]] std::string_view to_string(PtKind kind);

struct PtPacket {
  PtKind kind = PtKind::kUnknown;
  std::uint8_t size = 0;     ///< In bytes; 0 for kUnknown.
  std::uint8_t ip_form = 0;  ///< For packets with an address: how it joins the last one (3 bits).
  /// An address's bytes, TNT bits without their stop bit, or otherwise up to eight bytes after the
  /// opcode.
  std::uint64_t payload = 0;
  bool operator==(const PtPacket&) const = default;
};

/// Returns the first packet in `bytes`.
[[nodiscard]] PtPacket scan_packet(std::span<const std::uint8_t> bytes);

/// Returns the offset of the first PSB at or after `from`; nullopt if there is none.
[[nodiscard]] std::optional<std::size_t> find_psb(std::span<const std::uint8_t> bytes,
                                                  std::size_t from = 0);

/// The address that packets are compressed against.
class PtLastIp {
 public:
  /// Returns the packet's address, joined with the last one; nullopt if it has none ("suppressed").
  std::optional<std::uint64_t> update(const PtPacket& packet) {
    return update(packet.ip_form, packet.payload);
  }
  /// Updates from the form and at least the bytes that belong to it; bytes above are ignored.
  std::optional<std::uint64_t> update(unsigned form, std::uint64_t payload) {
    const auto keep_above = [&](unsigned bits) {
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      return (ip_ & ~mask) | (payload & mask);
    };
    switch (form) {
      case 1:
        return ip_ = keep_above(16);
      case 2:
        return ip_ = keep_above(32);
      case 3:  // 48 bits, the highest of which is the sign.
        return ip_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(payload << 16U) >> 16U);
      case 4:
        return ip_ = keep_above(48);
      case 6:
        return ip_ = payload;
      default:
        return std::nullopt;
    }
  }
  void reset() { ip_ = 0; }
  /// Number of address bytes by form; 0xff if there is no such form.
  static constexpr std::array<std::uint8_t, 8> kBytes{0, 2, 4, 6, 6, 0xff, 8, 0xff};

 private:
  std::uint64_t ip_ = 0;
};

/// Numbers of packets by kind, and of bytes that are no packet.
struct PtCounts {
  std::array<std::uint64_t, kPtKinds> packets{};
  std::uint64_t skipped_bytes = 0;  ///< Before the first PSB, and from each error to the next PSB.
  std::uint64_t errors = 0;

  [[nodiscard]] std::uint64_t of(PtKind kind) const {
    return packets[static_cast<std::size_t>(kind)];
  }
};
/// Counts from the first PSB on; after an error, from the next PSB. A packet cut off at the end
/// counts as an error.
[[nodiscard]] PtCounts count_packets(std::span<const std::uint8_t> bytes);

}  // namespace backtrail::decoder
