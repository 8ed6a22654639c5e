// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/demangle.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include <cxxabi.h>
// Otherwise libiberty declares the C library's basename() differently.
#define HAVE_DECL_BASENAME 1  // NOLINT(cppcoreguidelines-macro-usage)
#include <demangle.h>

namespace backtrail::decoder {
namespace {

constexpr std::size_t kMostMangledBytes = 64U << 10U;
constexpr int kMostPoints = 4;

/// Returns the length of a legacy Rust symbol without compiler-appended suffixes; 0 if `symbol` is
/// not one. Such a symbol is a C++ name whose last part is a hash: "17h", 16 hexadecimal digits,
/// "E". Earlier parts may contain dots.
std::size_t older_rust_length(std::string_view symbol) {
  constexpr std::string_view kMark = "17h";
  constexpr std::size_t kDigits = 16;
  constexpr std::size_t kPart = kMark.size() + kDigits + 1;
  if (!symbol.starts_with("_ZN")) return 0;
  for (std::size_t at = symbol.rfind(kMark); at != std::string_view::npos && at != 0;
       at = symbol.rfind(kMark, at - 1)) {
    const std::string_view part = symbol.substr(at, kPart);
    if (part.size() < kPart || part.back() != 'E') continue;
    const std::string_view digits = part.substr(kMark.size(), kDigits);
    if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) continue;
    const std::size_t end = at + kPart;
    if (end == symbol.size() || symbol[end] == '.') return end;
  }
  return 0;
}

struct TooLong {};

/// Stops the demangler, because a short symbol can expand to more text than there is memory. An
/// exception is the only way; the demangler owns nothing at that point.
void append_bounded(const char* bytes, std::size_t count, void* text) {
  auto& out = *static_cast<std::string*>(text);
  out.append(bytes, count);
  if (out.size() > kMaxNameBytes) throw TooLong{};
}

std::optional<std::string> of_rust(const std::string& symbol) {
  std::string text;
  try {
    if (::rust_demangle_callback(symbol.c_str(), DMGL_NO_OPTS, append_bounded, &text) == 0) {
      return std::nullopt;
    }
  } catch (const TooLong&) {
  }
  return text;
}

std::optional<std::string> of_cxx(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free};
  if (status != 0 || !text) return std::nullopt;
  return std::string{text.get()};
}

std::string with_appended(const std::string& name, std::string_view appended) {
  return appended.empty() ? name : name + " [" + std::string{appended} + "]";
}

}  // namespace

std::string demangled(const std::string& symbol) {
  constexpr std::string_view kStub = "@plt";
  if (symbol.size() > kStub.size() && symbol.ends_with(kStub)) {
    return demangled(symbol.substr(0, symbol.size() - kStub.size())) + std::string{kStub};
  }
  std::string name = symbol.substr(0, symbol.find('@'));
  if (const std::size_t end = older_rust_length(name);
      end != 0 && name.size() <= kMostMangledBytes) {
    if (const auto text = of_rust(name.substr(0, end))) {
      name = with_appended(*text, name.substr(end));
    }
  }
  const auto demangle = name.starts_with("_Z")   ? of_cxx
                        : name.starts_with("_R") ? of_rust
                                                 : nullptr;
  if (demangle != nullptr && name.size() <= kMostMangledBytes) {
    // Suffixes that compilers append to distinguish parts of a function are not part of the mangled
    // name. (The name of a coroutine's frame contains a dot.)
    std::size_t dot = name.find('.');
    for (int tries = 0; tries < kMostPoints; ++tries, dot = name.find('.', dot + 1)) {
      if (const auto text = demangle(name.substr(0, dot))) {
        name = with_appended(*text, dot == std::string::npos ? "" : name.substr(dot));
        break;
      }
      if (dot == std::string::npos) break;
    }
  }
  if (name.size() > kMaxNameBytes) name.replace(kMaxNameBytes, std::string::npos, "...");
  return name;
}

}  // namespace backtrail::decoder
