// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Parses a packet from left to right. The text is untrusted: every step may fail.

#include <cstdint>
#include <optional>
#include <string_view>

namespace backtrail::server {

/// A cursor over one packet's text, which it borrows.
class PacketText {
 public:
  explicit PacketText(std::string_view text) : rest_{text} {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }

  /// Skips the character or word if it is next; returns whether it was.
  bool take(char c);
  bool take(std::string_view word);
  /// Takes the hex digits that come next; nullopt if there are none or their value exceeds 64 bits.
  std::optional<std::uint64_t> take_hex();
  /// Works like take_hex(), with an optional 0x before the digits.
  std::optional<std::uint64_t> take_prefixed_hex();
  /// Takes the text before the next `delimiter` (or the end) and drops the delimiter.
  std::string_view take_field(char delimiter);

 private:
  std::string_view rest_;
};

/// Two hex numbers separated by a comma: "ADDR,LEN".
struct HexPair {
  std::uint64_t first;
  std::uint64_t second;
};
[[nodiscard]] std::optional<HexPair> take_hex_pair(PacketText& text);

}  // namespace backtrail::server
