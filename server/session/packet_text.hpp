#pragma once
/// @file
/// Reading a packet from left to right. The text is a stranger's: every step may find nothing.

#include <cstdint>
#include <optional>
#include <string_view>

namespace backtrail::server {

/// A cursor over one packet's text. Borrows the text.
class PacketText {
 public:
  explicit PacketText(std::string_view text) : rest_{text} {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }

  /// Takes the character or word if it is next.
  bool take(char c);
  bool take(std::string_view word);
  /// Takes the hex digits that are next; nothing if there is none or they exceed 64 bits.
  std::optional<std::uint64_t> take_hex();
  /// As take_hex, with an optional 0x before the digits.
  std::optional<std::uint64_t> take_prefixed_hex();
  /// Takes everything before the next `delimiter` (or the end); the delimiter itself is dropped.
  std::string_view take_field(char delimiter);

 private:
  std::string_view rest_;
};

/// Two hex numbers with a comma between: "ADDR,LEN". Takes them from `text`.
struct HexPair {
  std::uint64_t first;
  std::uint64_t second;
};
[[nodiscard]] std::optional<HexPair> take_hex_pair(PacketText& text);

}  // namespace backtrail::server
