// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/hex.hpp"

#include <charconv>

namespace backtrail::server::rsp {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

template <typename Container>
std::optional<Container> decode(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  Container out;
  out.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit_value(digits[i]);
    const int low = digit_value(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<typename Container::value_type>(high * 16 + low));
  }
  return out;
}

}  // namespace

std::string to_hex(std::span<const std::uint8_t> bytes) {
  std::string out(bytes.size() * 2, '\0');
  char* next = out.data();
  for (const std::uint8_t byte : bytes) {
    *next++ = kDigits[byte >> 4];
    *next++ = kDigits[byte & 0xf];
  }
  return out;
}

std::string to_hex(std::string_view text) {
  return to_hex(std::span{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::optional<std::vector<std::uint8_t>> from_hex(std::string_view digits) {
  return decode<std::vector<std::uint8_t>>(digits);
}

std::optional<std::string> text_from_hex(std::string_view digits) {
  return decode<std::string>(digits);
}

std::optional<std::uint64_t> parse_hex(std::string_view digits) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (digits.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace backtrail::server::rsp
