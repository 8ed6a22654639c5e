// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Makes names from untrusted files safe to print.

#include <string>
#include <string_view>

namespace backtrail::decoder {

/// Replaces each byte that is not valid UTF-8 by U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// Makes text safe for terminals and logs: valid UTF-8, no control characters, no change of writing
/// direction. A byte becomes \xNN, a character of several bytes \u{N}.
[[nodiscard]] std::string printable(std::string_view text);

/// Escapes the characters that have a meaning in Markdown.
[[nodiscard]] std::string markdown_escaped(std::string_view text);

}  // namespace backtrail::decoder
