// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/about_text.hpp"

#include <algorithm>

namespace backtrail::decoder {

std::string about_text(const std::map<std::string, std::string>& facts) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const auto& [name, value] : facts) {
    text += name + "=";
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte == 0x7f || c == '%') {
        text += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
      } else {
        text += c;
      }
    }
    text += "\n";
  }
  return text;
}

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
        hex_value(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> parse_about(std::string_view text) {
  std::map<std::string, std::string> facts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    facts.emplace(line.substr(0, equals), unescape(line.substr(equals + 1)));
  }
  return facts;
}

}  // namespace backtrail::decoder
