// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The accesses of a window with known addresses, grouped by the 8 bytes that they touch.

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace backtrail::decoder::values {

/// Accesses to 8 aligned bytes, in the order of execution.
struct Granule {
  std::uint64_t address = 0;
  std::vector<std::uint32_t> accesses;
};

class MemoryLists {
 public:
  /// Adds an access to the list of the granule at `address`.
  Granule& add(std::uint64_t address, std::uint32_t access);
  /// Returns the granule at `address`; null if no known access touches it.
  [[nodiscard]] const Granule* find(std::uint64_t address) const;

 private:
  std::unordered_map<std::uint64_t, Granule> granules_;
};

/// Returns the bits of a granule that `size` bytes at `address` cover.
[[nodiscard]] std::uint64_t covered_bits(std::uint64_t granule, std::uint64_t address,
                                         unsigned size);
/// Shift a value at `address` to its place in the granule, or a granule's bits to the value.
[[nodiscard]] std::uint64_t to_granule(std::uint64_t bits, std::uint64_t granule,
                                       std::uint64_t address);
[[nodiscard]] std::uint64_t from_granule(std::uint64_t bits, std::uint64_t granule,
                                         std::uint64_t address);

}  // namespace backtrail::decoder::values
