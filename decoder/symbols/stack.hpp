#pragma once
/// @file
/// A thread's stack as unwind tables tell of it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

struct StackFrame {
  TraceeAddr pc;
  bool is_return = false;        ///< `pc` is where a call returns to; else an instruction to run.
  bool is_signal_frame = false;  ///< A handler returns to it; a signal interrupted the next frame.

  /// An address within the instruction that the frame is at.
  [[nodiscard]] TraceeAddr place() const { return is_return ? pc - 1 : pc; }
};

enum class StackEnd : std::uint8_t {
  kOutermost,     ///< The last frame has no caller.
  kNoUnwindInfo,  ///< Nothing is known of the code that the last frame is in.
  kUnreadable,    ///< Where the last frame returns to cannot be read, or is 0.
  kDamaged,       ///< The last frame's caller would lie below it.
  kTooDeep,       ///< There are more than kMostStackFrames.
};

inline constexpr std::size_t kMostStackFrames = 1U << 18U;

struct Stack {
  std::vector<StackFrame> frames;  ///< Innermost first.
  StackEnd end = StackEnd::kNoUnwindInfo;
};

/// Copies memory of the process from an address on; returns how many bytes could be read.
using ReadMemory = std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)>;

}  // namespace backtrail::decoder
