// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/caught_signals.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace backtrail::decoder {
namespace {

constexpr int kHex = 16;

/// Removes the first word from `text`, with the blank after it, and returns it.
std::string_view next_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <typename T>
std::optional<T> number_of(std::string_view word, int base) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// Returns false if `word` is not a siginfo in hexadecimal.
bool take_siginfo(std::string_view word, arch::cpu::SiginfoBytes& out) {
  if (word.size() % 2 != 0 || word.size() / 2 > out.size()) return false;
  for (std::size_t i = 0; i < word.size() / 2; ++i) {
    const auto byte = number_of<std::uint8_t>(word.substr(2 * i, 2), kHex);
    if (!byte) return false;
    out[i] = *byte;
  }
  return true;
}

}  // namespace

std::vector<CaughtSignal> parse_caught(std::string_view text, arch::Isa isa) {
  std::vector<CaughtSignal> out;
  while (!text.empty()) {
    const auto signal = number_of<int>(next_word(text), 10);
    const auto pc = number_of<std::uint64_t>(next_word(text), kHex);
    CaughtSignal caught;
    if (!take_siginfo(next_word(text), caught.info) || !signal || !pc) break;
    caught.signal = *signal;
    caught.pc = TraceeAddr{*pc};
    if (isa == arch::Isa::kI386) caught.info = arch::cpu::siginfo_to_i386(caught.info);
    out.push_back(caught);
  }
  return out;
}

}  // namespace backtrail::decoder
