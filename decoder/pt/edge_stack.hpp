// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The call stack that predicts compressed returns, as edges of the flow graph.

#include <algorithm>
#include <array>
#include <cstdint>

namespace backtrail::decoder {

struct Edge;
/// Returns an edge from which nothing continues.
Edge& idle_edge();

/// Holds the newest 64 entries; older ones fall off.
/// Source: SDM vol. 3, "Return Compression (RET)".
class EdgeStack {
 public:
  /// Access to the stack for a decoder that does not count its entries. The entry below the oldest
  /// is idle_edge().
  struct Loan {
    static constexpr std::ptrdiff_t kSpare = 16;

    Edge** top = nullptr;  ///< One past the newest entry; always writable.
    /// At `top` <= `most`, kSpare more entries fit without pushing an old one out.
    Edge* const* most = nullptr;
  };

  EdgeStack() { clear(); }
  /// Pushes `edge` if `count` is 1, and nothing if it is 0, without a jump.
  void push(Edge* edge, std::uint32_t count = 1) {
    edges_[top_] = edge;
    top_ += count;
    bottom_ = std::max(bottom_, top_ - kDepth);
    if (top_ == kSlots - 1) [[unlikely]]
      move_down();
  }
  [[nodiscard]] bool empty() const { return top_ == bottom_; }
  /// Returns the newest entry; null if there is none.
  [[nodiscard]] const Edge* newest() const { return empty() ? nullptr : edges_[top_ - 1]; }
  Edge* pop() { return edges_[--top_]; }
  void clear() { top_ = bottom_ = kFirst; }

  /// Returns true if there is room for kSpare more entries.
  [[nodiscard]] bool can_lend() const { return top_ - bottom_ <= kDepth - kLoanSpare; }
  [[nodiscard]] Loan lend() {
    if (bottom_ + kDepth >= kSlots - 1) move_down();
    edges_[bottom_ - 1] = &idle_edge();
    Edge** const oldest = edges_.data() + bottom_;
    return {edges_.data() + top_, oldest + kDepth - kLoanSpare};
  }
  void take_back(const Loan& loan) { top_ = static_cast<std::uint32_t>(loan.top - edges_.data()); }

 private:
  static constexpr std::uint32_t kDepth = 64;
  static constexpr std::uint32_t kSlots = 512;
  static constexpr std::uint32_t kFirst = kDepth;  // Leaves room below, so that nothing underflows.
  static constexpr std::uint32_t kLoanSpare = static_cast<std::uint32_t>(Loan::kSpare);

  void move_down() {
    std::copy(edges_.begin() + bottom_, edges_.begin() + top_, edges_.begin() + kFirst);
    top_ -= bottom_ - kFirst;
    bottom_ = kFirst;
  }

  std::array<Edge*, kSlots> edges_{};
  std::uint32_t top_ = kFirst;
  std::uint32_t bottom_ = kFirst;
};

}  // namespace backtrail::decoder
