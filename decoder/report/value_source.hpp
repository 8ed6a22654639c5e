// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Interface to registers and memory of a dead program's threads, for the values in a report.

#include <cstdint>
#include <memory>

#include "decoder/variables/frame_state.hpp"

namespace backtrail::decoder {

class ValueSource {
 public:
  ValueSource() = default;
  ValueSource(const ValueSource&) = delete;
  ValueSource& operator=(const ValueSource&) = delete;
  virtual ~ValueSource() = default;

  /// Returns the thread's innermost frame at its end; null if its registers are unknown or the
  /// program is not a 64-bit one. The result must not outlive this object.
  [[nodiscard]] virtual std::unique_ptr<FrameState> at_end(std::uint32_t tid) = 0;
};

}  // namespace backtrail::decoder
