// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The call stack by which decoders of Intel PT predict returns.

#include <array>
#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

/// Holds the newest 64 return addresses; older ones fall off. At any time it is a subset of a
/// decoder's stack, whether or not that decoder pops at returns with a stated target. Source: SDM
/// vol. 3, "Return Compression (RET)"; libipt keeps as many.
class ReturnStack {
 public:
  void push(TraceeAddr return_address) {
    entries_[top_ % kDepth] = return_address;
    ++top_;
    if (size_ < kDepth) ++size_;
  }
  /// Returns true, and pops, if a return to `to` is predicted.
  bool pop_if(TraceeAddr to) {
    if (size_ == 0 || entries_[(top_ - 1) % kDepth] != to) return false;
    --top_;
    --size_;
    return true;
  }
  void clear() { size_ = 0; }

 private:
  static constexpr std::uint32_t kDepth = 64;

  std::array<TraceeAddr, kDepth> entries_{};
  std::uint32_t top_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace backtrail::decoder
