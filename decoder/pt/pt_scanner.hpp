#pragma once
/// @file
/// Intel PT bytes, packet by packet, as hardware writes them.
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
  kUnknown,  ///< Bytes that begin no packet, or a packet cut off by the end.
};
inline constexpr std::size_t kPtKinds = static_cast<std::size_t>(PtKind::kUnknown) + 1;

/// "psb", "tip.pge", ...
[[nodiscard]] std::string_view to_string(PtKind kind);

struct PtPacket {
  PtKind kind = PtKind::kUnknown;
  std::uint8_t size = 0;     ///< In bytes; 0 of kUnknown.
  std::uint8_t ip_form = 0;  ///< Of packets with an address: how it joins the last one (3 bits).
  /// An address's bytes, TNT bits below their stop bit, or whatever stands behind the opcode, at
  /// most eight bytes of it.
  std::uint64_t payload = 0;
  bool operator==(const PtPacket&) const = default;
};

/// The packet at the front of `bytes`.
[[nodiscard]] PtPacket scan_packet(std::span<const std::uint8_t> bytes);

/// Where the next PSB begins in `bytes`, `from` on.
[[nodiscard]] std::optional<std::size_t> find_psb(std::span<const std::uint8_t> bytes,
                                                  std::size_t from = 0);

/// The address that packets compress against.
class PtLastIp {
 public:
  /// The packet's address, joined with the last one; nothing when it has none ("suppressed").
  std::optional<std::uint64_t> update(const PtPacket& packet) {
    return update(packet.ip_form, packet.payload);
  }
  /// The same of the form and at least the bytes that belong to it; those above do not count.
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
      case 3:  // 48 bits, the highest one is the sign
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
  /// How many bytes of an address follow, by its form; 0xff = no such form.
  static constexpr std::array<std::uint8_t, 8> kBytes{0, 2, 4, 6, 6, 0xff, 8, 0xff};

 private:
  std::uint64_t ip_ = 0;
};

/// How many packets of each kind, and what was no packet.
struct PtCounts {
  std::array<std::uint64_t, kPtKinds> packets{};
  std::uint64_t skipped_bytes = 0;  ///< Before the first PSB, and from each error to the next one.
  std::uint64_t errors = 0;

  [[nodiscard]] std::uint64_t of(PtKind kind) const {
    return packets[static_cast<std::size_t>(kind)];
  }
};
/// Counts from the first PSB on; after an error it goes on at the next one. A packet cut off at the
/// end is an error without a kind.
[[nodiscard]] PtCounts count_packets(std::span<const std::uint8_t> bytes);

}  // namespace backtrail::decoder
