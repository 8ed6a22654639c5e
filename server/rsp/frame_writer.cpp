// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/frame_writer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

#include "server/rsp/hex.hpp"

namespace backtrail::server::rsp {
namespace {

constexpr std::size_t kMinRepeats = 3;
constexpr std::size_t kMaxRepeats = 97;
constexpr std::size_t kRepeatBase = 29;

/// Returns false if the count character could be mistaken for framing or an acknowledgement.
bool usable(std::size_t repeats) {
  const char c = static_cast<char>(repeats + kRepeatBase);
  return c != '$' && c != '#' && c != '+' && c != '-';
}

/// Returns the largest number of repeats that one run can hold; 0 if the run is too short.
std::size_t repeats_to_write(std::size_t repeats) {
  repeats = std::min(repeats, kMaxRepeats);
  while (repeats >= kMinRepeats && !usable(repeats)) --repeats;
  return repeats >= kMinRepeats ? repeats : 0;
}

/// Returns the number of characters from the first on that are equal to it; looks no further than
/// `most`.
std::size_t run_length(std::string_view text, std::size_t most) {
  text = text.substr(0, most);
  std::array<char, 8> same{};
  same.fill(text.front());
  std::size_t length = 1;
  while (length + same.size() <= text.size() &&
         std::memcmp(text.data() + length, same.data(), same.size()) == 0) {
    length += same.size();
  }
  while (length < text.size() && text[length] == text.front()) ++length;
  return length;
}

/// Appends the payload with its runs coded; copies the text between runs in one piece.
void append_runs(std::string_view payload, std::string& out) {
  const char* const begin = payload.data();
  const char* const end = begin + payload.size();
  const char* copied = begin;
  for (const char* p = begin; p + kMinRepeats < end;) {
    // The last difference among four bytes is where a run can begin.
    if (p[3] != p[2]) {
      p += 3;
      continue;
    }
    if (p[2] != p[1]) {
      p += 2;
      continue;
    }
    if (p[1] != p[0]) {
      ++p;
      continue;
    }
    const std::size_t repeats =
        repeats_to_write(run_length(std::string_view{p, end}, 1 + kMaxRepeats) - 1);
    out.append(copied, p + 1);
    out += '*';
    out += static_cast<char>(repeats + kRepeatBase);
    p += 1 + repeats;
    copied = p;
  }
  out.append(copied, end);
}

std::string frame(char lead, std::string_view payload) {
  std::string out;
  out.reserve(payload.size() + 8);
  out += lead;
  append_runs(payload, out);
  const std::string_view coded = std::string_view{out}.substr(1);
  const unsigned sum = std::accumulate(coded.begin(), coded.end(), 0U, [](unsigned total, char c) {
    return total + static_cast<unsigned char>(c);
  });
  const auto checksum = static_cast<std::uint8_t>(sum);
  out += '#';
  out += to_hex(std::span{&checksum, 1});
  return out;
}

}  // namespace

std::string encode_runs(std::string_view payload) {
  std::string out;
  out.reserve(payload.size());
  append_runs(payload, out);
  return out;
}

std::string frame_packet(std::string_view payload) {
  return frame('$', payload);
}
std::string frame_notification(std::string_view payload) {
  return frame('%', payload);
}

}  // namespace backtrail::server::rsp
