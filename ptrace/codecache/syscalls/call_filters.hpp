#pragma once
/// @file
/// What seccomp filters make of the calls that translated code needs: those that were there before
/// us, a container's, and the program's own. They may kill for a call that the program does not
/// make.

#include <string>

#include "arch/x86/translate/translator.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/seccomp_filter.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Whether all filters of a process are known: at most as many as ours and `own` of the program's,
/// and ours let us call. `launched`: by us, or by one that was, so that filters that are not its
/// own are ours, for they are never lost again.
[[nodiscard]] bool filters_are_known(const ProcStatus& status, bool launched, std::size_t own);

/// Why translated code must not run behind such filters; empty: it may.
[[nodiscard]] std::string why_not_behind(const SeccompFilters& filters);
/// Whether a thread that is about to stop may ask for its signal mask.
[[nodiscard]] bool let_threads_stop(const SeccompFilters& filters);
/// Whether pages of code may be made quiet, and be given back.
[[nodiscard]] bool let_pages_be_quiet(const SeccompFilters& filters);
/// Leaves the calls to translated code that the filters let pass wherever they are made.
void restrict_inline_calls(arch::x86::translate::InlineSystemCalls& calls,
                           const SeccompFilters& filters);

/// The filter that struct sock_fprog there describes; nothing: the kernel will refuse it, for the
/// memory cannot be read, or the program does not end.
[[nodiscard]] std::optional<SeccompFilter> read_filter(Process& process, TraceeAddr at);

}  // namespace backtrail::tracee::cache
