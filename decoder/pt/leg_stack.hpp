#pragma once
/// @file
/// The call stack that predicts compressed returns, as legs.

#include <algorithm>
#include <array>
#include <cstdint>

namespace backtrail::decoder {

struct Leg;

/// The newest 64; older ones fall off.
/// Source: SDM vol. 3, "Return Compression (RET)".
class LegStack {
 public:
  /// Pushes `leg` if `count` is 1, nothing if it is 0: without a jump.
  void push(Leg* leg, std::uint32_t count = 1) {
    legs_[top_ % kSlots] = leg;
    top_ += count;
    const std::uint32_t lost = top_ > kDepth ? top_ - kDepth : 0;
    bottom_ = std::max(bottom_, lost);
  }
  [[nodiscard]] bool empty() const { return top_ == bottom_; }
  /// Null if there is none.
  [[nodiscard]] const Leg* newest() const { return empty() ? nullptr : legs_[(top_ - 1) % kSlots]; }
  Leg* pop() { return legs_[--top_ % kSlots]; }
  void clear() { top_ = bottom_ = 0; }

 private:
  static constexpr std::uint32_t kDepth = 64;
  static constexpr std::uint32_t kSlots = 128;  // One that is free is always written to.

  std::array<Leg*, kSlots> legs_{};
  std::uint32_t top_ = 0;
  std::uint32_t bottom_ = 0;
};

}  // namespace backtrail::decoder
