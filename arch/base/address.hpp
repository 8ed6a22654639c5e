// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Addresses as a type of their own, so that an address in a traced program is not taken for a host
/// pointer.

#include <compare>
#include <cstdint>
#include <functional>

#include <fmt/core.h>

namespace backtrail {

/// A virtual address in a traced program. 64 bits wide for 32-bit programs too.
class TraceeAddr {
 public:
  constexpr TraceeAddr() = default;
  constexpr explicit TraceeAddr(std::uint64_t value) : value_{value} {}

  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

  constexpr auto operator<=>(const TraceeAddr&) const = default;

  constexpr TraceeAddr& operator+=(std::uint64_t bytes) {
    value_ += bytes;
    return *this;
  }
  friend constexpr TraceeAddr operator+(TraceeAddr a, std::uint64_t bytes) {
    return TraceeAddr{a.value_ + bytes};
  }
  friend constexpr TraceeAddr operator-(TraceeAddr a, std::uint64_t bytes) {
    return TraceeAddr{a.value_ - bytes};
  }
  /// Returns the distance in bytes, modulo 2^64.
  friend constexpr std::uint64_t operator-(TraceeAddr a, TraceeAddr b) {
    return a.value_ - b.value_;
  }

 private:
  std::uint64_t value_ = 0;
};

namespace literals {
constexpr TraceeAddr operator""_ta(unsigned long long value) {
  return TraceeAddr{value};
}
}  // namespace literals

}  // namespace backtrail

template <>
struct std::hash<backtrail::TraceeAddr> {
  std::size_t operator()(backtrail::TraceeAddr a) const noexcept {
    return std::hash<std::uint64_t>{}(a.value());
  }
};

/// Formats as 0x... (lower case, no padding).
template <>
struct fmt::formatter<backtrail::TraceeAddr> {
  constexpr auto parse(format_parse_context& ctx) { return ctx.begin(); }
  static format_context::iterator format(backtrail::TraceeAddr a, format_context& ctx);
};
