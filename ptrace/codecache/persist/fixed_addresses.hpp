// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Gives programs with random addresses the same addresses each time, because translations are kept
/// for fixed addresses. Launches ask the kernel for that (personality(2), ADDR_NO_RANDOMIZE), but
/// containers usually refuse it (Docker's default seccomp profile).

#include <cstdint>
#include <optional>

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Moves a program that has not executed its first instruction, its dynamic linker, and the place
/// of later mappings. If the thread is in the stop of PTRACE_EVENT_EXEC, its call is complete
/// afterwards. Does nothing if the program has run, if its addresses are not random, if its address
/// space is limited (RLIMIT_AS), or if a step fails. Updates what the kernel told the program and
/// what /proc shows.
/// Only the first call for a program has an effect.
void fix_addresses(Thread& thread);

/// Returns a number for the place of this process's code: other processes with this number have
/// theirs at the same place. 0 if nothing is random; nullopt if the place will differ next time.
[[nodiscard]] std::optional<std::uint64_t> repeated_place(Process& process);

/// Frees the address space that fix_addresses() has taken above the program's mappings. Call when
/// the thread is before a system call that limits how much it may map.
void give_room_back(Thread& thread);

}  // namespace backtrail::tracee::cache
