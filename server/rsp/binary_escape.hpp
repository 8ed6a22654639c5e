// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Escapes binary data in packets: a byte that framing needs is sent as '}' and the byte ^ 0x20.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backtrail::server::rsp {

/// Escapes '$', '#', '}' and '*' (which would mean a run length).
[[nodiscard]] std::string escape_binary(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::string escape_binary(std::string_view text);

/// Appends as much of `bytes` to `out` as fits in `room` characters once escaped, never half an
/// escape. Returns how many bytes of the input were taken.
std::size_t append_escaped(std::span<const std::uint8_t> bytes, std::size_t room, std::string& out);

/// Returns the unescaped bytes; nullopt if the text ends within an escape.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> unescape_binary(std::string_view escaped);

}  // namespace backtrail::server::rsp
