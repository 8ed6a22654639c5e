#pragma once
/// @file
/// Characters that mean something in HTML and XML.

#include <string_view>

namespace backtrail {

/// What stands for `c` in text and in quoted values; empty: it stands for itself.
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
