// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packs numbers into as few bytes as they need.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace backtrail::tracee::cache {

/// Appends a number: seven bits per byte; the eighth bit is set in all bytes but the last.
inline void put_number(std::uint64_t value, std::vector<std::uint8_t>& out) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<std::uint8_t>(value | 0x80U));
  out.push_back(static_cast<std::uint8_t>(value));
}

/// Most bytes of a packed number.
inline constexpr std::size_t kMostPackedBytes = 10;
/// Writes a number to `out`, which has room for it; returns where the next one goes.
inline std::uint8_t* put_number(std::uint64_t value, std::uint8_t* out) {
  for (; value >= 0x80; value >>= 7U) *out++ = static_cast<std::uint8_t>(value | 0x80U);
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

/// Maps distances of either sign to numbers that are small for small distances.
constexpr std::uint64_t fold_distance(std::uint64_t distance) {
  return (distance << 1U) ^ (0 - (distance >> 63U));
}
constexpr std::uint64_t unfold_distance(std::uint64_t folded) {
  return (folded >> 1U) ^ (0 - (folded & 1U));
}

/// Reads packed numbers. Beyond the end it reads 0.
class PackedReader {
 public:
  explicit PackedReader(std::span<const std::uint8_t> bytes) : rest_{bytes} {}
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7fU} << shift;
      if ((next & 0x80U) == 0) break;
    }
    return value;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace backtrail::tracee::cache
