#pragma once
/// @file
/// seccomp filters that were there before us: a container's.

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {

/// Whether a process may be made to call what translated code needs. `launched`: by us, or by one
/// that was; filters are never lost again, so as many as ours are ours. Any other filter may be
/// the program's own, which kills for a call that the program does not make.
[[nodiscard]] bool filters_let_us_call(const ProcStatus& status, bool launched);

}  // namespace backtrail::tracee::cache
