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

  /// A place in a thread's trace.
  struct Past {
    std::uint64_t newer = 0;  ///< Number of records after the record that it follows.
    TraceeAddr pc;            ///< The instruction about to run.
    std::size_t ahead = 0;    ///< Most instructions between the record and the place.
  };
  /// Returns the state before the first such place; null if there is none, or if a gap or a signal
  /// comes before it. The result must not outlive this object.
  [[nodiscard]] virtual std::unique_ptr<FrameState> in_past(std::uint32_t tid,
                                                            const Past& place) = 0;
  /// Returns the state right after a record that is a return; null if it is none, or if a signal
  /// came before the next instruction.
  /// @param newer  The number of records after it.
  [[nodiscard]] virtual std::unique_ptr<FrameState> after_return(std::uint32_t tid,
                                                                 std::uint64_t newer) = 0;
};

}  // namespace backtrail::decoder
