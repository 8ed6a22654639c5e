// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Shares state among processes: translations in one address space, and CodeWriters in one tree of
/// processes.

#include <memory>
#include <vector>

#include "ptrace/codecache/syscalls/own_memory.hpp"

namespace backtrail::tracee {
class Process;
class ProcessObserver;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CacheSpace;

/// Lets a vfork's child use its parent's memory and translations.
void share_space(const Process& parent, Process& child);
/// Call when the process stops using the memory, now or soon.
void leave_space(Process& process);

/// Destroys a process that has ended or was let go. While a vfork's child uses its memory, the
/// object lives on without threads.
void end_process(std::unique_ptr<Process> process);

/// Returns the spaces in the memory that the process uses. There may be none. There are several if
/// processes share the memory for longer than a vfork's child does: each has its own translations
/// of the same code, so whatever changes code changes it for all of them.
[[nodiscard]] std::vector<CacheSpace*> spaces_in_memory_of(Process& process);
/// Returns what the recorder has mapped in the memory that the process uses, for whichever of its
/// users, ascending. A user that has gone leaves its part until remove_left_memory().
[[nodiscard]] std::vector<MemoryRange> recorders_memory(Process& process);
/// Call when a process that is not recorded, or not any more, uses the memory of the process: no
/// code handles its faults.
void note_unrecorded_user(Process& process);

/// Returns the observer for every process whose threads may be recorded. Lives as long as the
/// program.
[[nodiscard]] ProcessObserver& process_observer();

}  // namespace backtrail::tracee::cache
