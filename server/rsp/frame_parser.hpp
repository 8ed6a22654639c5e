// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Parses a client's bytes into packets, acknowledgements and interrupts. No I/O. Memory stays
/// below the given maximum whatever arrives.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace backtrail::server::rsp {

enum class FrameKind : std::uint8_t {
  kPacket,       ///< Correct checksum; runs are expanded, binary escapes are not.
  kBadChecksum,  ///< Wrong or malformed checksum; payload as for kPacket.
  kOversized,    ///< Packet longer than the maximum, skipped to its end.
  kAck,          ///< '+'
  kNack,         ///< '-'
  kInterrupt,    ///< Byte 0x03 outside a packet.
};

struct Frame {
  FrameKind kind = FrameKind::kPacket;
  std::string payload;  ///< For kPacket and kBadChecksum; else empty.
};

/// State machine that takes bytes:
///
///     idle --'$'--> payload --'#'--> checksum digit, checksum digit --> event, idle
///          --'%'--> payload that is dropped at its end (clients send no notifications)
///
/// A '$' inside a packet begins a new one: a payload never holds a raw '$', and a client that died
/// within a packet must not swallow the next. Meaningless bytes outside packets are ignored.
class FrameParser {
 public:
  /// @param max_payload  Longest payload to return, after expansion of runs.
  explicit FrameParser(std::size_t max_payload) : max_payload_{max_payload} {}

  /// Takes bytes from the front of `input` until one event is complete. Returns nullopt when
  /// `input` is used up without one. Call until it returns nullopt.
  [[nodiscard]] std::optional<Frame> next(std::string_view& input);

  /// Returns true if a packet has begun and is not complete.
  [[nodiscard]] bool in_packet() const { return state_ != State::kIdle; }
  /// Returns how many bytes outside packets were ignored.
  [[nodiscard]] std::uint64_t ignored_bytes() const { return ignored_; }

 private:
  enum class State : std::uint8_t { kIdle, kPayload, kRunLength, kChecksumHigh, kChecksumLow };

  [[nodiscard]] std::optional<Frame> on_idle(char c);
  void begin(bool notification);
  std::size_t on_plain_payload(std::string_view input);
  void on_payload(char c);
  void on_run_length(char c);
  [[nodiscard]] Frame finish(bool checksum_right);
  void append(std::size_t count, char c);
  void overflow();

  std::size_t max_payload_;
  State state_ = State::kIdle;
  bool notification_ = false;
  bool oversized_ = false;
  std::uint8_t sum_ = 0;
  int checksum_high_ = 0;
  std::uint64_t ignored_ = 0;
  std::string payload_;
};

}  // namespace backtrail::server::rsp
