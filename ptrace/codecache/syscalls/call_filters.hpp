// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Judges seccomp filters by the calls that translated code and the recorder need. Filters may be
/// older than the recorder, such as a container's, or the program's own. They may kill the program
/// for a call that it does not make itself.

#include <string>

#include "arch/cpu/translator.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/seccomp_filter.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Returns true if all filters of a process are known: it has no more filters than the server's and
/// `own` of the program's, and the server's allow the recorder's calls. `launched`: the process was
/// launched by the server or descends from such a process. Its other filters are then the server's,
/// because a process never loses a filter.
[[nodiscard]] bool filters_are_known(const ProcStatus& status, bool launched, std::size_t own);

/// Returns why translated code must not run under these filters; empty if it may.
[[nodiscard]] std::string why_not_behind(const SeccompFilters& filters);
/// Returns true if a thread that is about to stop may ask for its signal mask.
[[nodiscard]] bool let_threads_stop(const SeccompFilters& filters);
/// Returns true if code pages may be write-protected and unprotected.
[[nodiscard]] bool allow_protected_pages(const SeccompFilters& filters);
/// Restricts the calls that translated code makes itself to those that the filters allow wherever
/// they are made.
void restrict_inline_calls(arch::cpu::translate::InlineSystemCalls& calls,
                           const SeccompFilters& filters);

/// Reads the filter described by the struct sock_fprog at `at`. nullopt if the kernel will refuse
/// it: the memory cannot be read, or the program does not end.
[[nodiscard]] std::optional<SeccompFilter> read_filter(Process& process, TraceeAddr at);

}  // namespace backtrail::tracee::cache
