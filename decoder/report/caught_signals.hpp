// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Signals whose handlers ran in a thread, as the recorder noted them in a crash file.

#include <string_view>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/compat_siginfo.hpp"
#include "arch/isa.hpp"

namespace backtrail::decoder {

struct CaughtSignal {
  int signal = 0;
  TraceeAddr pc;                   ///< The interrupted instruction.
  arch::cpu::SiginfoBytes info{};  ///< In the layout of the program's width.
};

/// @param text  The fact "caught" (docs/core-format.md). Parsing stops at the first malformed
/// entry.
/// @return Oldest first.
[[nodiscard]] std::vector<CaughtSignal> parse_caught(std::string_view text, arch::Isa isa);

}  // namespace backtrail::decoder
