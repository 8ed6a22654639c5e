#pragma once
/// @file
/// Which processes share translations and what is known of writers of code: those of one memory,
/// and those that come from one another.

namespace backtrail::tracee {
class Process;
class ProcessObserver;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// A vfork's child uses its parent's memory, and the translations there.
void share_space(const Process& parent, Process& child);
/// The process does not use that memory any more, or will not for much longer.
void leave_space(Process& process);

/// For every process whose threads may be recorded. Lives as long as the program.
[[nodiscard]] ProcessObserver& process_observer();

}  // namespace backtrail::tracee::cache
