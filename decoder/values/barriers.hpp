// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Stores whose address is not known yet. No conclusion about memory may cross them.

#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace backtrail::decoder::values {

/// A set of access indices with fast search for neighbours.
class IndexSet {
 public:
  explicit IndexSet(std::size_t limit) : words_(limit / 64 + 1), used_(words_.size() / 64 + 1) {}
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void insert(std::uint32_t i) {
    words_[i / 64] |= bit(i);
    used_[i / 64 / 64] |= bit(i / 64);
  }
  void erase(std::uint32_t i) {
    words_[i / 64] &= ~bit(i);
    if (words_[i / 64] == 0) used_[i / 64 / 64] &= ~bit(i / 64);
  }
  [[nodiscard]] bool contains(std::uint32_t i) const { return (words_[i / 64] & bit(i)) != 0; }
  /// Returns the least member >= i, or kNone.
  [[nodiscard]] std::uint32_t next(std::uint32_t i) const;
  /// Returns the greatest member < i, or kNone.
  [[nodiscard]] std::uint32_t previous(std::uint32_t i) const;

 private:
  using Words = std::vector<std::uint64_t>;
  static constexpr std::uint64_t bit(std::size_t i) { return std::uint64_t{1} << (i % 64); }
  static std::uint32_t next_in(const Words& words, std::size_t i);
  static std::uint32_t previous_in(const Words& words, std::size_t i);

  Words words_;
  Words used_;  ///< The members' words: bit i is set if words_[i] is not 0.
};

class Barriers {
 public:
  explicit Barriers(std::size_t accesses) : full_(accesses), bounded_(accesses) {}
  static constexpr std::uint32_t kNone = IndexSet::kNone;

  /// Adds a store to an unknown address.
  void add(std::uint32_t access) { full_.insert(access); }
  /// Bounds a store to addresses in [low, high], both included.
  void bound(std::uint32_t access, std::uint64_t low, std::uint64_t high);
  void remove(std::uint32_t access);
  [[nodiscard]] bool contains(std::uint32_t access) const {
    return full_.contains(access) || bounded_.contains(access);
  }
  /// Returns true if the barrier's bounds are no wider than these.
  [[nodiscard]] bool within(std::uint32_t access, std::uint64_t low, std::uint64_t high) const;

  /// Returns the first barrier >= `access` that may touch the 8 bytes at `granule`, or kNone.
  [[nodiscard]] std::uint32_t next(std::uint32_t access, std::uint64_t granule) const;
  /// Returns the last barrier < `access` that may touch them, or kNone.
  [[nodiscard]] std::uint32_t previous(std::uint32_t access, std::uint64_t granule) const;
  [[nodiscard]] const IndexSet& full() const { return full_; }

 private:
  struct Bounds {
    std::uint64_t low, high;
  };
  /// Number of bounded barriers that a search examines before it assumes that the next one touches.
  static constexpr unsigned kPatience = 400;
  [[nodiscard]] bool touches(std::uint32_t access, std::uint64_t granule) const;

  IndexSet full_;
  IndexSet bounded_;
  std::unordered_map<std::uint32_t, Bounds> bounds_;
};

}  // namespace backtrail::decoder::values
