#pragma once
/// @file
/// Hexadecimal as the remote protocol writes it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backtrail::server::rsp {

/// Two lower-case digits a byte.
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::string to_hex(std::string_view text);

/// Bytes of an even number of hex digits; nothing if the text is anything else.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> from_hex(std::string_view digits);
[[nodiscard]] std::optional<std::string> text_from_hex(std::string_view digits);

/// The whole text as one number without prefix, 1 to 16 digits.
[[nodiscard]] std::optional<std::uint64_t> parse_hex(std::string_view digits);

}  // namespace backtrail::server::rsp
