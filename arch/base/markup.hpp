// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Escapes characters that have a meaning in HTML and XML.

#include <string_view>

namespace backtrail {

/// Returns the entity for `c` in text and quoted values; empty if `c` needs none.
[[nodiscard]] constexpr std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&apos;";
    default:
      return {};
  }
}

}  // namespace backtrail
