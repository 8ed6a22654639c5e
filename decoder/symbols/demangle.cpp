#include "decoder/symbols/demangle.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include <cxxabi.h>
// libiberty would declare the C library's basename() in its own way.
#define HAVE_DECL_BASENAME 1  // NOLINT(cppcoreguidelines-macro-usage)
#include <libiberty/demangle.h>

namespace backtrail::decoder {
namespace {

constexpr std::size_t kMostMangledBytes = 64U << 10U;
constexpr int kMostPoints = 4;

/// "::h" and 16 hexadecimal digits, with which older Rust tells instances apart.
void cut_rust_hash(std::string& name) {
  constexpr std::string_view kMark = "::h";
  constexpr std::size_t kDigits = 16;
  if (name.size() <= kMark.size() + kDigits) return;
  const std::size_t at = name.size() - kMark.size() - kDigits;
  if (name.compare(at, kMark.size(), kMark) != 0) return;
  const std::string_view digits = std::string_view{name}.substr(at + kMark.size());
  if (digits.find_first_not_of("0123456789abcdef") == std::string_view::npos) name.resize(at);
}

struct TooLong {};

/// A short symbol can stand for more text than there is memory. The demangler knows no other way
/// to be stopped; it holds nothing.
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
  std::string name{text.get()};
  cut_rust_hash(name);
  return name;
}

}  // namespace

std::string demangled(const std::string& symbol) {
  constexpr std::string_view kStub = "@plt";
  if (symbol.size() > kStub.size() && symbol.ends_with(kStub)) {
    return demangled(symbol.substr(0, symbol.size() - kStub.size())) + std::string{kStub};
  }
  std::string name = symbol.substr(0, symbol.find('@'));
  const auto demangle = name.starts_with("_Z")   ? of_cxx
                        : name.starts_with("_R") ? of_rust
                                                 : nullptr;
  if (demangle != nullptr && name.size() <= kMostMangledBytes) {
    // What compilers append to tell parts of a function apart is no part of the mangled name. (A
    // coroutine's frame has a point within.)
    std::size_t dot = name.find('.');
    for (int tries = 0; tries < kMostPoints; ++tries, dot = name.find('.', dot + 1)) {
      if (const auto text = demangle(name.substr(0, dot))) {
        name = *text + (dot == std::string::npos ? "" : " [" + name.substr(dot) + "]");
        break;
      }
      if (dot == std::string::npos) break;
    }
  }
  if (name.size() > kMaxNameBytes) name.replace(kMaxNameBytes, std::string::npos, "...");
  return name;
}

}  // namespace backtrail::decoder
