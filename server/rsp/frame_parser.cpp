// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/frame_parser.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::server::rsp {
namespace {

constexpr char kInterruptByte = '\x03';
constexpr int kRepeatBase = 29;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::uint8_t add(std::uint8_t sum, char c) {
  return static_cast<std::uint8_t>(sum + static_cast<std::uint8_t>(c));
}

}  // namespace

std::optional<Frame> FrameParser::next(std::string_view& input) {
  while (!input.empty()) {
    if (state_ == State::kPayload) {
      input.remove_prefix(on_plain_payload(input));
      if (input.empty()) break;
    }
    const char c = input.front();
    input.remove_prefix(1);
    if (state_ != State::kIdle && c == '$') {
      begin(false);
      continue;
    }
    switch (state_) {
      case State::kIdle:
        if (auto frame = on_idle(c)) return frame;
        break;
      case State::kPayload:
        on_payload(c);
        break;
      case State::kRunLength:
        on_run_length(c);
        break;
      case State::kChecksumHigh:
        checksum_high_ = hex_value(c);
        state_ = State::kChecksumLow;
        break;
      case State::kChecksumLow: {
        const int low = hex_value(c);
        const bool right = checksum_high_ >= 0 && low >= 0 && checksum_high_ * 16 + low == sum_;
        Frame frame = finish(right);
        if (!notification_) return frame;
        break;
      }
    }
  }
  return std::nullopt;
}

std::optional<Frame> FrameParser::on_idle(char c) {
  switch (c) {
    case '$':
      begin(false);
      return std::nullopt;
    case '%':
      begin(true);
      return std::nullopt;
    case '+':
      return Frame{FrameKind::kAck, {}};
    case '-':
      return Frame{FrameKind::kNack, {}};
    case kInterruptByte:
      return Frame{FrameKind::kInterrupt, {}};
    default:
      ++ignored_;
      return std::nullopt;
  }
}

void FrameParser::begin(bool notification) {
  state_ = State::kPayload;
  notification_ = notification;
  oversized_ = false;
  sum_ = 0;
  payload_.clear();
}

/// Takes the characters before the next '$', '#' or '*' at once. Returns their number.
std::size_t FrameParser::on_plain_payload(std::string_view input) {
  const auto special = std::find_if(input.begin(), input.end(),
                                    [](char c) { return c == '$' || c == '#' || c == '*'; });
  const auto plain = input.substr(0, static_cast<std::size_t>(special - input.begin()));
  for (const char c : plain) sum_ = add(sum_, c);
  if (oversized_ || notification_) return plain.size();
  if (plain.size() > max_payload_ - payload_.size()) {
    overflow();
  } else {
    payload_ += plain;
  }
  return plain.size();
}

void FrameParser::on_payload(char c) {
  if (c == '#') {
    state_ = State::kChecksumHigh;
    return;
  }
  sum_ = add(sum_, c);
  if (c == '*' && !payload_.empty()) {
    state_ = State::kRunLength;
    return;
  }
  append(1, c);
}

void FrameParser::on_run_length(char c) {
  state_ = State::kPayload;
  if (c < ' ' || c > '~' || c == '#') {
    // No count follows: the '*' stands for itself.
    append(1, '*');
    on_payload(c);
    return;
  }
  sum_ = add(sum_, c);
  append(static_cast<std::size_t>(c - kRepeatBase), payload_.back());
}

Frame FrameParser::finish(bool checksum_right) {
  state_ = State::kIdle;
  if (oversized_) return Frame{FrameKind::kOversized, {}};
  return Frame{checksum_right ? FrameKind::kPacket : FrameKind::kBadChecksum,
               std::exchange(payload_, {})};
}

void FrameParser::append(std::size_t count, char c) {
  if (oversized_ || notification_) return;
  if (count > max_payload_ - payload_.size()) {
    overflow();
  } else {
    payload_.append(count, c);
  }
}

void FrameParser::overflow() {
  oversized_ = true;
  payload_ = std::string{};
}

}  // namespace backtrail::server::rsp
