#pragma once
/// @file
/// Names come from files that anybody may have written; these make them fit to be printed.

#include <string>
#include <string_view>

namespace backtrail::decoder {

/// What is no valid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// For terminals and logs: control characters as \xNN, text in valid UTF-8, no changes of the
/// writing direction.
[[nodiscard]] std::string printable(std::string_view text);

/// For text within Markdown: characters that mean something there stand for themselves.
[[nodiscard]] std::string markdown_escaped(std::string_view text);

}  // namespace backtrail::decoder
