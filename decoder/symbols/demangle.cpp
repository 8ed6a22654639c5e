#include "decoder/symbols/demangle.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <cxxabi.h>

namespace backtrail::decoder {
namespace {

constexpr std::size_t kMostMangledBytes = 64U << 10U;
constexpr int kMostPoints = 4;

/// "::h" and 16 hexadecimal digits, with which Rust tells instances apart.
void cut_rust_hash(std::string& name) {
  constexpr std::string_view kMark = "::h";
  constexpr std::size_t kDigits = 16;
  if (name.size() <= kMark.size() + kDigits) return;
  const std::size_t at = name.size() - kMark.size() - kDigits;
  if (name.compare(at, kMark.size(), kMark) != 0) return;
  const std::string_view digits = std::string_view{name}.substr(at + kMark.size());
  if (digits.find_first_not_of("0123456789abcdef") == std::string_view::npos) name.resize(at);
}

}  // namespace

std::string demangled(const std::string& symbol) {
  constexpr std::string_view kStub = "@plt";
  if (symbol.size() > kStub.size() && symbol.ends_with(kStub)) {
    return demangled(symbol.substr(0, symbol.size() - kStub.size())) + std::string{kStub};
  }
  std::string name = symbol.substr(0, symbol.find('@'));
  if (name.starts_with("_Z") && name.size() <= kMostMangledBytes) {
    // What compilers append to tell parts of a function apart is no part of the mangled name. (A
    // coroutine's frame has a point within.)
    std::size_t dot = name.find('.');
    for (int tries = 0; tries < kMostPoints; ++tries, dot = name.find('.', dot + 1)) {
      int status = 0;
      const std::unique_ptr<char, decltype(&std::free)> text{
          abi::__cxa_demangle(name.substr(0, dot).c_str(), nullptr, nullptr, &status), &std::free};
      if (status == 0 && text) {
        name = text.get() + (dot == std::string::npos ? "" : " [" + name.substr(dot) + "]");
        cut_rust_hash(name);
        break;
      }
      if (dot == std::string::npos) break;
    }
  }
  if (name.size() > kMaxNameBytes) name.replace(kMaxNameBytes, std::string::npos, "...");
  return name;
}

}  // namespace backtrail::decoder
