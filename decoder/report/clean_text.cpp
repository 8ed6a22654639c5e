// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/clean_text.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "arch/base/markup.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  ///< Bytes; 0 if the text does not begin with valid UTF-8.
};

CodePoint first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t value = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    value = value << 6U | (byte(i) & 0x3fU);
  }
  const bool shortest = length == 2 || value >= (length == 3 ? 0x800U : 0x10000U);
  if (!shortest || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, length};
}

/// Returns true for control characters and for those that change the writing direction.
bool is_unprintable(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

template <typename Take>
void each_code_point(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const CodePoint c = first_of(text);
    const std::size_t length = c.length == 0 ? 1 : c.length;
    take(c, text.substr(0, length));
    text.remove_prefix(length);
  }
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  each_code_point(text, [&](const CodePoint& c, std::string_view bytes) {
    out += c.length == 0 ? kReplacement : bytes;
  });
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  each_code_point(text, [&](const CodePoint& c, std::string_view bytes) {
    if (c.length != 0 && !is_unprintable(c.value)) {
      out += bytes;
    } else if (bytes.size() == 1) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(bytes.front()));
    } else {
      out += fmt::format("\\u{{{:x}}}", c.value);
    }
  });
  return out;
}

std::string markdown_escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (const std::string_view entity = entity_of(c); !entity.empty()) {
      out += entity;
      continue;
    }
    if (std::string_view{"\\`*_{}[]()#+-.!|~@:"}.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace backtrail::decoder
