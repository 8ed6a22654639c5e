#pragma once
/// @file
/// The same addresses each time for programs whose addresses are random. Launches ask the kernel
/// for that (personality(2), ADDR_NO_RANDOMIZE), but containers refuse it as a rule (Docker's
/// default seccomp profile), and translations are kept for addresses.

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace backtrail::tracee {
class Thread;
}

namespace backtrail::tracee::cache {

/// Moves a program that has not run its first instruction yet, its dynamic linker, and where the
/// kernel will map more. If the thread is in the stop of PTRACE_EVENT_EXEC its call is done then.
/// Nothing happens where the program has run, where its addresses are not random or are limited
/// (RLIMIT_AS), or where something of this cannot be done. What the kernel has told the program,
/// and /proc others, is true afterwards.
void fix_addresses(Thread& thread);

/// A number for where this process has its code: another one that has the same will have it there,
/// too. 0 where nothing is random; nothing where everything will lie elsewhere next time.
[[nodiscard]] std::optional<std::uint64_t> repeated_place(pid_t pid);

/// The thread, which stands in front of a system call, is about to limit how much it may map: what
/// fix_addresses() has taken of the room above is free again.
void give_room_back(Thread& thread);

}  // namespace backtrail::tracee::cache
