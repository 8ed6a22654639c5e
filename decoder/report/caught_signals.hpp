#pragma once
/// @file
/// The signals that a thread's handlers were called for, as the recorder noted them in a crash
/// file.

#include <string_view>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"
#include "arch/x86/siginfo32.hpp"

namespace backtrail::decoder {

struct CaughtSignal {
  int signal = 0;
  TraceeAddr pc;                   ///< What it interrupted.
  arch::x86::SiginfoBytes info{};  ///< In the program's own width.
};

/// @param text  The fact "caught", see docs/core-format.md. What is no such text is passed over.
/// @return Oldest first.
[[nodiscard]] std::vector<CaughtSignal> parse_caught(std::string_view text, arch::Isa isa);

}  // namespace backtrail::decoder
