// SPDX-License-Identifier: Apache-2.0
#include "server/agent/agent_printf.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace backtrail::server::agent {
namespace {

constexpr std::size_t kMaxString = 4096;  ///< Most characters that one %s prints.
constexpr unsigned kMaxWidth = 1024;

/// One conversion: %[flags][width][.precision][length]letter.
struct Conversion {
  bool left = false;
  bool zero = false;
  bool plus = false;
  bool alternate = false;
  unsigned width = 0;
  std::optional<unsigned> precision;
  bool long_value = false;   ///< l, ll, j, z, t: 64 bits; otherwise 32.
  unsigned narrow_bits = 0;  ///< Bits of h (16) or hh (8); 0 = neither.
  char letter = 0;
};

std::optional<unsigned> take_number(std::string_view& text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return std::min(value, kMaxWidth);
}

void take_flags(std::string_view& text, Conversion& conversion) {
  while (!text.empty()) {
    switch (text.front()) {
      case '-':
        conversion.left = true;
        break;
      case '0':
        conversion.zero = true;
        break;
      case '+':
        conversion.plus = true;
        break;
      case '#':
        conversion.alternate = true;
        break;
      case ' ':
      case '\'':
        break;
      default:
        return;
    }
    text.remove_prefix(1);
  }
}

void take_length(std::string_view& text, Conversion& conversion) {
  while (!text.empty()) {
    switch (text.front()) {
      case 'l':
      case 'j':
      case 'z':
      case 't':
        conversion.long_value = true;
        break;
      case 'h':
        conversion.narrow_bits = conversion.narrow_bits == 16 ? 8 : 16;
        break;
      default:
        return;
    }
    text.remove_prefix(1);
  }
}

/// Takes a conversion from `text`, which begins after the '%'.
Result<Conversion> take_conversion(std::string_view& text) {
  Conversion conversion;
  take_flags(text, conversion);
  conversion.width = take_number(text).value_or(0);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    conversion.precision = take_number(text).value_or(0);
  }
  take_length(text, conversion);
  if (text.empty()) return fail(TraceErrc::kMalformed, "agent printf format");
  conversion.letter = text.front();
  text.remove_prefix(1);
  return conversion;
}

std::uint64_t narrowed(std::uint64_t value, const Conversion& conversion, bool is_signed) {
  if (conversion.long_value) return value;
  const unsigned bits = conversion.narrow_bits != 0 ? conversion.narrow_bits : 32;
  const std::uint64_t low = value & ((std::uint64_t{1} << bits) - 1);
  const bool negative = is_signed && (low >> (bits - 1)) != 0;
  return negative ? low | ~((std::uint64_t{1} << bits) - 1) : low;
}

/// A number's sign or prefix, and its digits.
struct Number {
  std::string prefix;
  std::string digits;
};

Number format_number(std::uint64_t argument, const Conversion& conversion) {
  const bool is_signed = conversion.letter == 'd' || conversion.letter == 'i';
  const std::uint64_t value = narrowed(argument, conversion, is_signed);
  const bool negative = is_signed && (value >> 63) != 0;
  const std::uint64_t magnitude = negative ? 0 - value : value;
  Number number;
  switch (conversion.letter) {
    case 'x':
      number = {conversion.alternate ? "0x" : "", fmt::format("{:x}", magnitude)};
      break;
    case 'X':
      number = {conversion.alternate ? "0X" : "", fmt::format("{:X}", magnitude)};
      break;
    case 'o':
      number = {conversion.alternate ? "0" : "", fmt::format("{:o}", magnitude)};
      break;
    case 'p':
      number = {"0x", fmt::format("{:x}", argument)};
      break;
    default:
      number = {negative                       ? "-"
                : is_signed && conversion.plus ? "+"
                                               : "",
                fmt::format("{}", magnitude)};
      break;
  }
  const std::size_t least = conversion.precision.value_or(0);
  if (number.digits.size() < least) number.digits.insert(0, least - number.digits.size(), '0');
  return number;
}

Result<std::string> read_string(TraceeAddr address, const Conversion& conversion,
                                AgentMachine& machine) {
  const std::size_t most =
      std::min<std::size_t>(conversion.precision.value_or(kMaxString), kMaxString);
  std::string text;
  for (std::uint64_t i = 0; text.size() < most; ++i) {
    std::array<std::uint8_t, 1> byte{};
    BT_CHECKED(machine.read_memory(address + i, byte));
    if (byte[0] == 0) break;
    text += static_cast<char>(byte[0]);
  }
  return text;
}

void append_padded(std::string& out, const Conversion& conversion, const Number& number) {
  const std::size_t length = number.prefix.size() + number.digits.size();
  const std::size_t pad = conversion.width > length ? conversion.width - length : 0;
  const bool zeros = conversion.zero && !conversion.left && !conversion.precision;
  if (!conversion.left && !zeros) out.append(pad, ' ');
  out += number.prefix;
  if (zeros) out.append(pad, '0');
  out += number.digits;
  if (conversion.left) out.append(pad, ' ');
}

Result<Number> convert(const Conversion& conversion, std::uint64_t argument,
                       AgentMachine& machine) {
  switch (conversion.letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
    case 'p':
      return format_number(argument, conversion);
    case 'c':
      if (conversion.long_value) break;
      return Number{"", std::string(1, static_cast<char>(argument & 0xff))};
    case 's': {
      if (conversion.long_value) break;
      BT_TRY(std::string text, read_string(TraceeAddr{argument}, conversion, machine));
      return Number{"", std::move(text)};
    }
    default:
      break;
  }
  return fail(TraceErrc::kUnsupported, "agent printf conversion",
              static_cast<std::uint8_t>(conversion.letter));
}

/// Takes a C escape from `text`, which begins after the backslash: gdb sends formats as the user
/// typed them. Error kMalformed for an escape that C does not have.
Result<char> take_escape(std::string_view& text) {
  constexpr std::string_view kLetters = "abefnrtv\\\"'";
  constexpr std::string_view kMeanings = "\a\b\x1b\f\n\r\t\v\\\"'";
  if (text.empty()) return fail(TraceErrc::kMalformed, "agent printf escape");
  if (text.front() >= '0' && text.front() <= '7') {
    unsigned value = 0;
    for (int i = 0; i < 3 && !text.empty() && text.front() >= '0' && text.front() <= '7'; ++i) {
      value = value * 8 + static_cast<unsigned>(text.front() - '0');
      text.remove_prefix(1);
    }
    return static_cast<char>(value & 0xffU);
  }
  const std::size_t letter = kLetters.find(text.front());
  if (letter == std::string_view::npos) return fail(TraceErrc::kMalformed, "agent printf escape");
  text.remove_prefix(1);
  return kMeanings[letter];
}

/// Takes plain text up to a '%' or a backslash, or one escape.
Result<std::string> take_plain(std::string_view& text) {
  if (text.front() == '\\') {
    text.remove_prefix(1);
    BT_TRY(const char c, take_escape(text));
    return std::string(1, c);
  }
  const std::size_t length = std::min(text.find_first_of("%\\"), text.size());
  std::string plain{text.substr(0, length)};
  text.remove_prefix(length);
  return plain;
}

}  // namespace

Result<std::string> agent_printf(std::string_view format, std::span<const std::uint64_t> arguments,
                                 AgentMachine& machine) {
  std::string out;
  while (!format.empty()) {
    if (format.front() != '%') {
      BT_TRY(const std::string plain, take_plain(format));
      out += plain;
      continue;
    }
    format.remove_prefix(1);
    if (format.starts_with('%')) {
      out += '%';
      format.remove_prefix(1);
      continue;
    }
    BT_TRY(Conversion conversion, take_conversion(format));
    if (arguments.empty()) return fail(TraceErrc::kMalformed, "agent printf arguments");
    const bool text = conversion.letter == 's' || conversion.letter == 'c';
    if (text) conversion.zero = false;
    BT_TRY(const Number number, convert(conversion, arguments.front(), machine));
    arguments = arguments.subspan(1);
    append_padded(out, conversion, number);
  }
  return out;
}

}  // namespace backtrail::server::agent
