// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `monitor set debug`: which log messages the server writes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace backtrail::server::handlers {

/// The answers to `set debug 1` and `set debug 0`, which gdbserver changed.
enum class DebugWording : std::uint8_t { kGdbserver13, kGdbserver16 };

struct DebugAnswer {
  bool done = false;
  std::string text;  ///< For the user; ends with a newline.
};

/// Runs `set debug on|off|1|0` or `set debug COMPONENT on|off|1|0`.
/// @param words The words after `set debug`; at least one.
[[nodiscard]] DebugAnswer set_debug(std::span<const std::string_view> words, DebugWording wording);

}  // namespace backtrail::server::handlers
