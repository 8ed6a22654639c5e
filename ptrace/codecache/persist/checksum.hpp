// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A fast checksum against accidents; it does not withstand intent.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace backtrail::tracee::cache {

/// Eight sums in parallel, because a single one would wait for its multiplications.
class Checksum {
 public:
  static constexpr std::size_t kAtOnce = 64;
  /// Every call but the last must pass a multiple of kAtOnce bytes.
  void add(std::span<const std::uint8_t> bytes) {
    while (bytes.size() >= kAtOnce) {
      std::array<std::uint64_t, 8> words{};
      std::memcpy(words.data(), bytes.data(), sizeof words);
      for (std::size_t i = 0; i < sums_.size(); ++i) {
        sums_[i] = (sums_[i] ^ words[i]) * kFactor;
        sums_[i] ^= sums_[i] >> 29U;
      }
      bytes = bytes.subspan(kAtOnce);
    }
    for (const std::uint8_t byte : bytes) sums_[0] = (sums_[0] ^ byte) * kFactor;
  }
  [[nodiscard]] std::uint64_t value() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : sums_) sum = (sum ^ each) * kFactor;
    return sum;
  }

 private:
  static constexpr std::uint64_t kFactor = 0xff51'afd7'ed55'8ccdULL;
  std::array<std::uint64_t, 8> sums_{1, 2, 3, 4, 5, 6, 7, 8};
};

}  // namespace backtrail::tracee::cache
