// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Signal sets as the kernel has them: bit n - 1 stands for signal n (rt_sigprocmask(2)).

#include <csignal>
#include <cstdint>

namespace backtrail::tracee {

[[nodiscard]] constexpr std::uint64_t signal_bit(int signal) {
  return 1ULL << (signal - 1);
}

/// Returns true for signals that an instruction raises, and raises again when it is repeated.
[[nodiscard]] constexpr bool is_raised_by_insns(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
}

inline constexpr std::uint64_t kSegvBit = signal_bit(SIGSEGV);
inline constexpr std::uint64_t kTrapBit = signal_bit(SIGTRAP);
inline constexpr std::uint64_t kContinueBit = signal_bit(SIGCONT);
/// All signals. The kernel ignores SIGKILL and SIGSTOP in masks.
inline constexpr std::uint64_t kEverySignal = ~std::uint64_t{0};

}  // namespace backtrail::tracee
