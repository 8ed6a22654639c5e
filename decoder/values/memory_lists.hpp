#pragma once
/// @file
/// The accesses of a window whose addresses are known, by the 8 bytes that they touch.

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace backtrail::decoder::values {

/// Accesses to 8 aligned bytes, in the order in which they happened.
struct Granule {
  std::uint64_t address = 0;
  std::vector<std::uint32_t> accesses;
};

class MemoryLists {
 public:
  /// Adds an access to the list of the granule at `address`.
  Granule& add(std::uint64_t address, std::uint32_t access);
  /// The granule at `address`; nullptr if nothing known touches it.
  [[nodiscard]] const Granule* find(std::uint64_t address) const;

 private:
  std::unordered_map<std::uint64_t, Granule> granules_;
};

/// The bits of a granule that `size` bytes at `address` cover.
[[nodiscard]] std::uint64_t covered_bits(std::uint64_t granule, std::uint64_t address,
                                         unsigned size);
/// Moves a value at `address` to its place in the granule, or a granule's bits to the value.
[[nodiscard]] std::uint64_t to_granule(std::uint64_t bits, std::uint64_t granule,
                                       std::uint64_t address);
[[nodiscard]] std::uint64_t from_granule(std::uint64_t bits, std::uint64_t granule,
                                         std::uint64_t address);

}  // namespace backtrail::decoder::values
