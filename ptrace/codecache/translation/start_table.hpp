// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A hash table of the native addresses that superblocks begin at or exits lead to.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

/// Maps a native address to a superblock and a list of exits. Every new exit looks its target up,
/// so the table uses open addressing, and neighbours in the program's code share a cache line.
class StartTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// Key of a free slot; no superblock begins at this address.
  static constexpr TraceeAddr kNowhere{0x8000'0000'0000'0001};
  struct Entry {
    TraceeAddr start = kNowhere;
    std::uint32_t block = kNone;       ///< Index of the superblock that begins there.
    std::uint32_t first_exit = kNone;  ///< First exit that leads there, linked or not.
  };

  /// Returns the entry of an address; nullptr if there is none. Pointers and references to entries
  /// are valid until the next at().
  [[nodiscard]] const Entry* find(TraceeAddr start) const {
    if (slots_.empty() || start == kNowhere) return nullptr;
    const Entry& entry = slots_[slot_of(start)];
    return entry.start == start ? &entry : nullptr;
  }
  [[nodiscard]] Entry* find(TraceeAddr start);
  /// Returns the entry of an address, and adds it if there is none. `start` must not be kNowhere.
  Entry& at(TraceeAddr start);
  void clear();
  [[nodiscard]] const std::vector<Entry>& slots() const { return slots_; }

 private:
  /// Returns the slot that holds the address, or the free slot that it belongs in.
  [[nodiscard]] std::size_t slot_of(TraceeAddr start) const {
    const Entry* const slots = slots_.data();
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash(start) & mask;
    while (slots[slot].start != start && slots[slot].start != kNowhere) slot = (slot + 1) & mask;
    return slot;
  }
  /// Returns a hash that maps each 64 bytes of code to the four slots of one cache line.
  static std::size_t hash(TraceeAddr start) {
    constexpr std::uint64_t kFactor = 0x9e37'79b9'7f4a'7c15ULL;
    const std::uint64_t line = (start.value() >> 6U) * kFactor;
    return ((line ^ line >> 32U) << 2U) | (start.value() >> 4U & 3U);
  }
  void grow();

  std::vector<Entry> slots_;  ///< Empty, or a power of two in number.
  std::size_t used_ = 0;
};

}  // namespace backtrail::tracee::cache
