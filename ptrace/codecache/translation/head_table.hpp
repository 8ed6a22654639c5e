// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A hash table of the native addresses that superblocks begin at, or would begin at.

#include <cstdint>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

/// Open addressing, because every exit asks here: neighbours in the program's code are neighbours
/// here.
class HeadTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// No superblock begins there.
  static constexpr TraceeAddr kNowhere{0x8000'0000'0000'0001};
  struct Entry {
    TraceeAddr head = kNowhere;
    std::uint32_t block = kNone;       ///< The superblock that begins there.
    std::uint32_t first_exit = kNone;  ///< The list of exits that lead there, linked or not.
  };

  /// The entry of an address; nullptr if there is none. Pointers and references hold until the next
  /// at().
  [[nodiscard]] const Entry* find(TraceeAddr head) const;
  [[nodiscard]] Entry* find(TraceeAddr head);
  /// The entry of an address, which is made if there is none. Not for kNowhere.
  Entry& at(TraceeAddr head);
  void clear();
  [[nodiscard]] const std::vector<Entry>& slots() const { return slots_; }

 private:
  /// The slot that the address is in, or would be.
  [[nodiscard]] std::size_t slot_of(TraceeAddr head) const;
  void grow();

  std::vector<Entry> slots_;  ///< A power of two of them, or none.
  std::size_t used_ = 0;
};

}  // namespace backtrail::tracee::cache
