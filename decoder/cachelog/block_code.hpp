// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bytes of code that superblocks were made of, of code that may change.

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "arch/base/address.hpp"
#include "arch/base/chunked_array.hpp"

namespace backtrail::decoder {

using TakenBranch = std::pair<TraceeAddr, TraceeAddr>;

/// By the superblocks' numbers in the ExitTable. Grows only.
class BlockCode {
 public:
  /// The bytes that a superblock executes after some of its branches, and perhaps more.
  struct Segment {
    TraceeAddr begin;
    std::span<const std::uint8_t> bytes;
  };

  /// Adds a superblock.
  /// @param branches  Those inside, in order.
  /// @param ranges    The code that it was made of, in the order of its path.
  /// @param bytes     The bytes of all ranges, one after the other.
  void add(std::uint32_t block, std::span<const TakenBranch> branches,
           std::span<const TakenBranch> ranges, std::span<const std::uint8_t> bytes);

  /// Returns true if no superblock was added.
  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  /// Returns the code of a superblock after this number of its branches; nullopt if there is none,
  /// or it was not added. Valid until more is added.
  [[nodiscard]] std::optional<Segment> segment(std::uint32_t block, std::size_t passed) const;

 private:
  struct Kept {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  struct Place {
    TraceeAddr begin;
    std::size_t first = 0;  ///< Index of its first byte.
    std::size_t size = 0;
  };
  std::unordered_map<std::uint32_t, Kept> blocks_;
  ChunkedArray<Place> segments_;
  ChunkedArray<std::uint8_t> bytes_;
};

}  // namespace backtrail::decoder
