#pragma once
/// @file
/// Signals in words.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::decoder {

struct SignalText {
  std::string words;                  ///< No full stop.
  std::optional<TraceeAddr> address;  ///< What it is about.
  bool sent = false;                  ///< By a process, perhaps its own; nothing faulted.
};

/// @param siginfo  The kernel's siginfo_t in the program's width; may be empty.
/// @param pc, sp   Of the thread that got it.
[[nodiscard]] SignalText signal_text(int signal, std::span<const std::uint8_t> siginfo,
                                     arch::Isa isa, TraceeAddr pc, TraceeAddr sp);

}  // namespace backtrail::decoder
