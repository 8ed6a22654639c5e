#pragma once
/// @file
/// gdb's signal numbers, which are the same on every system, and this system's.
/// Source: GDB's include/gdb/signals.def for the numbers; signal(7) for Linux.

#include <optional>
#include <string>

namespace backtrail::server {

inline constexpr int kGdbSignalTrap = 5;
inline constexpr int kGdbSignalUnknown = 143;

/// gdb's number of a Linux signal; kGdbSignalUnknown when it has none. 0 is 0.
[[nodiscard]] int to_gdb_signal(int linux_signal);
/// The Linux signal of gdb's number; nothing when Linux has no such signal. 0 is 0.
[[nodiscard]] std::optional<int> from_gdb_signal(int gdb_signal);
/// gdb's name for a Linux signal: "SIGSEGV", "SIG34"; "unknown" when it has none.
[[nodiscard]] std::string gdb_signal_name(int linux_signal);

}  // namespace backtrail::server
