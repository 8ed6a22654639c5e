// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A filter before the look-up of superblocks by native address.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

/// Tells quickly of most addresses that no superblock begins there. The translator asks about each
/// instruction, nearly always in vain. The bits of neighbours in the program's code share a cache
/// line.
class StartFilter {
 public:
  /// Returns false until the first add(), and after clear().
  [[nodiscard]] bool in_use() const { return !bits_.empty(); }
  void add(TraceeAddr start) {
    if (bits_.empty()) bits_.resize(kBits / kWordBits);
    bits_[word_of(start)] |= bit_of(start);
  }
  void clear() { bits_.clear(); }
  /// Returns false if no superblock begins at an address. True says nothing.
  [[nodiscard]] bool may_begin_at(TraceeAddr at) const {
    return bits_.empty() || (bits_[word_of(at)] & bit_of(at)) != 0;
  }

 private:
  static constexpr std::size_t kBits = std::size_t{1} << 18U;
  static constexpr std::size_t kWordBits = 64;
  static std::size_t word_of(TraceeAddr at) { return at.value() % kBits / kWordBits; }
  static std::uint64_t bit_of(TraceeAddr at) { return std::uint64_t{1} << at.value() % kWordBits; }

  std::vector<std::uint64_t> bits_;
};

}  // namespace backtrail::tracee::cache
