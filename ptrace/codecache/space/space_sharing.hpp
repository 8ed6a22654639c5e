// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Shares state among processes: translations in one address space, and CodeWriters in one tree of
/// processes.

namespace backtrail::tracee {
class Process;
class ProcessObserver;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Lets a vfork's child use its parent's memory and translations.
void share_space(const Process& parent, Process& child);
/// Call when the process stops using the memory, now or soon.
void leave_space(Process& process);

/// Returns the observer for every process whose threads may be recorded. Lives as long as the
/// program.
[[nodiscard]] ProcessObserver& process_observer();

}  // namespace backtrail::tracee::cache
