// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/filter_check.hpp"

#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/syscalls/call_filters.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

Result<void> check_filters(Thread& thread) {
  Process& process = thread.process();
  const bool unseen = process.code_writers->foreign_writes_possible();
  if (process.filters_checked && !unseen) return {};
  BT_TRY(const ProcStatus status, ProcFs{}.status(thread.tid()));
  if (!filters_are_known(status, !process.attached(), process.filters.size())) {
    return fail(TraceErrc::kUnsupported, "seccomp");
  }
  process.filters_checked = true;
  return {};
}

}  // namespace backtrail::tracee::cache
