// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads and writes little-endian numbers in untrusted byte strings.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace backtrail::decoder {

/// Reads forward. A read past the end returns zeros and clears good().
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : rest_{bytes} {}

  /// Returns false after a read past the end or an invalid number.
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::span<const std::uint8_t> rest() const { return rest_; }

  template <typename Number>
  Number number() {
    static_assert(std::is_integral_v<Number>);
    Number value{};
    const auto bytes = take(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  /// Takes the next `count` bytes; takes none and clears good() if there are fewer.
  std::span<const std::uint8_t> take(std::uint64_t count) {
    if (count > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const auto bytes = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }
  void skip(std::uint64_t count) { (void)take(count); }
  /// Reads a LEB128 number of at most 64 bits.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = number<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    good_ = false;
    return 0;
  }
  std::uint64_t signed_varint() {
    const std::uint64_t folded = varint();
    return (folded >> 1U) ^ (~(folded & 1U) + 1U);
  }

 private:
  std::span<const std::uint8_t> rest_;
  bool good_ = true;
};

class ByteWriter {
 public:
  template <typename Number>
  void number(Number value) {
    static_assert(std::is_integral_v<Number>);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void put(std::span<const std::uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) { bytes_.insert(bytes_.end(), text.begin(), text.end()); }
  /// Writes a field of `size` bytes: `text` is cut or padded with NUL.
  void field(std::string_view text, std::size_t size) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::copy_n(text.begin(), std::min(text.size(), size),
                bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void zeros(std::size_t count) { bytes_.resize(bytes_.size() + count); }
  void align(std::size_t unit) { zeros((unit - bytes_.size() % unit) % unit); }
  void varint(std::uint64_t value) {
    while (value >= 0x80U) {
      bytes_.push_back(static_cast<std::uint8_t>(value | 0x80U));
      value >>= 7U;
    }
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  /// Writes a difference modulo 2^64. Small values of either sign take few bytes.
  void signed_varint(std::uint64_t value) { varint((value << 1U) ^ (~(value >> 63U) + 1U)); }

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] std::vector<std::uint8_t>& buffer() { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace backtrail::decoder
