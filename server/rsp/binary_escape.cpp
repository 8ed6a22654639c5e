// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/binary_escape.hpp"

#include <limits>

namespace backtrail::server::rsp {
namespace {

constexpr char kEscape = '}';
constexpr unsigned char kFlip = 0x20;

bool needs_escape(unsigned char byte) {
  return byte == '$' || byte == '#' || byte == '}' || byte == '*';
}

}  // namespace

std::size_t append_escaped(std::span<const std::uint8_t> bytes, std::size_t room,
                           std::string& out) {
  std::size_t taken = 0;
  for (const std::uint8_t byte : bytes) {
    const bool escaped = needs_escape(byte);
    const std::size_t needed = escaped ? 2 : 1;
    if (room < needed) break;
    room -= needed;
    if (escaped) out += kEscape;
    out += static_cast<char>(escaped ? byte ^ kFlip : byte);
    ++taken;
  }
  return taken;
}

std::string escape_binary(std::span<const std::uint8_t> bytes) {
  std::string out;
  out.reserve(bytes.size());
  append_escaped(bytes, std::numeric_limits<std::size_t>::max(), out);
  return out;
}

std::string escape_binary(std::string_view text) {
  return escape_binary(std::span{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::optional<std::vector<std::uint8_t>> unescape_binary(std::string_view escaped) {
  std::vector<std::uint8_t> out;
  out.reserve(escaped.size());
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    auto byte = static_cast<std::uint8_t>(escaped[i]);
    if (escaped[i] == kEscape) {
      if (++i == escaped.size()) return std::nullopt;
      byte = static_cast<std::uint8_t>(static_cast<std::uint8_t>(escaped[i]) ^ kFlip);
    }
    out.push_back(byte);
  }
  return out;
}

}  // namespace backtrail::server::rsp
