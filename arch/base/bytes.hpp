// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Loads and stores little-endian numbers in byte buffers, at any alignment.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace backtrail {

/// Returns the number at `at`. The buffer must contain all of its bytes.
template <std::unsigned_integral T>
[[nodiscard]] inline T load_le(const std::uint8_t* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <std::unsigned_integral T>
[[nodiscard]] inline T load_le(std::span<const std::uint8_t> bytes, std::size_t offset) {
  return load_le<T>(bytes.data() + offset);
}
template <std::unsigned_integral T>
inline void store_le(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace backtrail
