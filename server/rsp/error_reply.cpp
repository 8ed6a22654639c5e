// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/error_reply.hpp"

#include <fmt/format.h>

namespace backtrail::server::rsp {
namespace {

constexpr std::size_t kMaxText = 500;

/// Replaces a character that a packet cannot hold unescaped.
char presentable(char c) {
  switch (c) {
    case '#':
    case '$':
    case '*':
      return '_';
    case '}':
      return ')';
    case '{':
      return '(';
    default:
      break;
  }
  if (c == '\n' || c == '\t' || c == '\r') return ' ';
  return c >= ' ' && c <= '~' ? c : '?';
}

}  // namespace

std::string error_reply() {
  return error_reply(std::uint8_t{1});
}

std::string error_reply(std::uint8_t number) {
  return fmt::format("E{:02x}", number);
}

std::string error_text_reply(std::string_view text) {
  if (text.empty()) return error_reply();
  std::string reply = "E.";
  for (const char c : text.substr(0, kMaxText)) reply += presentable(c);
  return reply;
}

std::string error_reply(const Error& error, ErrorForm form) {
  return form == ErrorForm::kText ? error_text_reply(error.message()) : error_reply();
}

}  // namespace backtrail::server::rsp
