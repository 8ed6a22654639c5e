// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Facts about a recording as the text of a note; see docs/core-format.md.

#include <map>
#include <string>
#include <string_view>

namespace backtrail::decoder {

/// Formats facts as "name=value" lines. Control characters, '%' and DEL are escaped as %XX.
[[nodiscard]] std::string about_text(const std::map<std::string, std::string>& facts);
/// Lines without '=' are left out.
[[nodiscard]] std::map<std::string, std::string> parse_about(std::string_view text);

}  // namespace backtrail::decoder
