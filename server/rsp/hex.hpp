// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Hexadecimal text of the remote protocol.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backtrail::server::rsp {

/// Returns two lower-case digits a byte.
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::string to_hex(std::string_view text);

/// Parses an even number of hex digits; nullopt if the text is anything else.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> from_hex(std::string_view digits);
[[nodiscard]] std::optional<std::string> text_from_hex(std::string_view digits);

/// Parses the whole text as one number of 1 to 16 digits without prefix; nullopt if malformed.
[[nodiscard]] std::optional<std::uint64_t> parse_hex(std::string_view digits);

}  // namespace backtrail::server::rsp
