// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Describes signals in words.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::decoder {

struct SignalText {
  std::string words;                  ///< Without a full stop.
  std::optional<TraceeAddr> address;  ///< The address that the signal concerns.
  bool sent = false;  ///< Sent by a process, perhaps the program itself; no instruction faulted.
};

/// @param siginfo  The kernel's siginfo_t in the layout of the program's width; may be empty.
/// @param pc, sp   Registers of the thread that got the signal.
[[nodiscard]] SignalText signal_text(int signal, std::span<const std::uint8_t> siginfo,
                                     arch::Isa isa, TraceeAddr pc, TraceeAddr sp);

}  // namespace backtrail::decoder
