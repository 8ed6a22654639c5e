// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Converts between gdb's signal numbers, which are the same on every system, and Linux's.
/// Source: GDB's include/gdb/signals.def for the numbers; signal(7) for Linux.

#include <optional>
#include <string>

namespace backtrail::server {

inline constexpr int kGdbSignalTrap = 5;
inline constexpr int kGdbSignalUnknown = 143;

/// Returns gdb's number of a Linux signal; kGdbSignalUnknown if it has none. 0 gives 0.
[[nodiscard]] int to_gdb_signal(int linux_signal);
/// Returns the Linux signal of gdb's number; nullopt if Linux has no such signal. 0 gives 0.
[[nodiscard]] std::optional<int> from_gdb_signal(int gdb_signal);
/// Returns gdb's name of a Linux signal: "SIGSEGV", "SIG34"; "unknown" if it has none.
[[nodiscard]] std::string gdb_signal_name(int linux_signal);

}  // namespace backtrail::server
