#pragma once
/// @file
/// Bytes from a client -> packets, acknowledgements and interrupts. No I/O; memory is bounded by
/// the maximum given, whatever arrives.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace backtrail::server::rsp {

enum class FrameKind : std::uint8_t {
  kPacket,       ///< Checksum right; runs are expanded, binary escapes are left.
  kBadChecksum,  ///< Likewise, but the checksum is wrong or no hex number.
  kOversized,    ///< A packet longer than the maximum, skipped to its end, checksum or not.
  kAck,          ///< '+'
  kNack,         ///< '-'
  kInterrupt,    ///< The byte 0x03 outside a packet.
};

struct Frame {
  FrameKind kind = FrameKind::kPacket;
  std::string payload;  ///< Of kPacket and kBadChecksum.
};

/// A state machine that bytes are pushed through:
///
///     idle --'$'--> payload --'#'--> checksum digit, checksum digit --> event, idle
///          --'%'--> payload that is dropped at its end (clients send no notifications)
///
/// A '$' inside a packet begins a new one (payloads never hold a raw '$'), so that a client that
/// died within a packet does not swallow the next. Bytes outside packets that mean nothing are
/// ignored.
class FrameParser {
 public:
  /// @param max_payload  Longest payload handed out, after expansion of runs.
  explicit FrameParser(std::size_t max_payload) : max_payload_{max_payload} {}

  /// Takes bytes from the front of `input` until one event is complete; nothing when the input
  /// is used up without one. Call until it returns nothing.
  [[nodiscard]] std::optional<Frame> next(std::string_view& input);

  /// A packet has begun and is not complete.
  [[nodiscard]] bool in_packet() const { return state_ != State::kIdle; }
  /// Bytes outside packets ignored so far.
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
