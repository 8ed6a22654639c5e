// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Bounds the work that damaged or hostile debug information can cause.

#include <cstdint>

namespace backtrail::decoder {

/// Counts steps: debug entries visited, operations evaluated.
class WorkLimit {
 public:
  explicit WorkLimit(std::uint64_t most) : left_{most} {}

  /// Takes one step. Returns false if the limit was reached.
  [[nodiscard]] bool step() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  std::uint64_t left_;
};

}  // namespace backtrail::decoder
