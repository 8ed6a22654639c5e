#pragma once
/// @file
/// The call stack that decoders of Intel PT keep to predict returns.

#include <array>
#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

/// The newest 64 return addresses; older ones fall off. Holds a subset of what a decoder holds, at
/// every moment and whether or not that decoder pops at returns it was told the target of.
/// Source: SDM vol. 3, "Return Compression (RET)"; libipt keeps as many.
class ReturnStack {
 public:
  void push(TraceeAddr return_address) {
    entries_[top_ % kDepth] = return_address;
    ++top_;
    if (size_ < kDepth) ++size_;
  }
  /// Whether a return to `to` is predicted; then it is popped.
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
