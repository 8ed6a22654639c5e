// SPDX-License-Identifier: Apache-2.0
#include "server/session/packet_text.hpp"

#include <algorithm>
#include <string_view>

#include "server/rsp/hex.hpp"

namespace backtrail::server {

bool PacketText::take(char c) {
  if (!next_is(c)) return false;
  rest_.remove_prefix(1);
  return true;
}

bool PacketText::take(std::string_view word) {
  if (!rest_.starts_with(word)) return false;
  rest_.remove_prefix(word.size());
  return true;
}

std::optional<std::uint64_t> PacketText::take_hex() {
  const std::size_t length =
      std::min(rest_.find_first_not_of("0123456789abcdefABCDEF"), rest_.size());
  const auto value = rsp::parse_hex(rest_.substr(0, length));
  if (value) rest_.remove_prefix(length);
  return value;
}

std::optional<std::uint64_t> PacketText::take_prefixed_hex() {
  if (!take("0x")) take("0X");
  return take_hex();
}

std::string_view PacketText::take_field(char delimiter) {
  const std::size_t end = rest_.find(delimiter);
  const std::string_view field = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  return field;
}

std::optional<HexPair> take_hex_pair(PacketText& text) {
  const auto first = text.take_hex();
  if (!first || !text.take(',')) return std::nullopt;
  const auto second = text.take_hex();
  if (!second) return std::nullopt;
  return HexPair{*first, *second};
}

}  // namespace backtrail::server
