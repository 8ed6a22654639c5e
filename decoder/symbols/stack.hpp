// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A thread's stack, as found by unwind tables.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

struct StackFrame {
  TraceeAddr pc;
  bool is_return = false;  ///< `pc` is a return address; otherwise the next instruction to run.
  /// A handler returns to this frame; a signal interrupted the next one.
  bool is_signal_frame = false;

  /// Returns an address within the frame's current instruction.
  [[nodiscard]] TraceeAddr place() const { return is_return ? pc - 1 : pc; }
};

enum class StackEnd : std::uint8_t {
  kOutermost,     ///< The last frame has no caller.
  kNoUnwindInfo,  ///< The code of the last frame has no unwind information.
  kUnreadable,    ///< The last frame's return address is unreadable or 0.
  kDamaged,       ///< The last frame's caller would lie below it on the stack.
  kTooDeep,       ///< There are more frames than kMostStackFrames.
};

inline constexpr std::size_t kMostStackFrames = 1U << 18U;

struct Stack {
  std::vector<StackFrame> frames;  ///< Innermost first.
  StackEnd end = StackEnd::kNoUnwindInfo;
};

/// Copies memory of the process from an address on. Returns the number of bytes read.
using ReadMemory = std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)>;

}  // namespace backtrail::decoder
