// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/dumpable.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {
namespace {

/// Returns true if fs.suid_dumpable is 2, by which root gets cores of programs that changed their
/// user, and this process is root.
bool root_gets_all() {
  const auto text = ProcFs{}.read("sys/fs/suid_dumpable");
  return text && text->starts_with('2') && ::geteuid() == 0;
}

/// Returns true if the process's /proc files belong to another user, as those of processes that are
/// not dumpable do.
bool files_are_roots(pid_t pid) {
  const auto status = ProcFs{}.status(pid);
  struct stat facts {};
  // The folder itself keeps its owner (task_dump_owner() in fs/proc/base.c), so look at a file.
  return status && ::stat(ProcFs{}.path(pid, "maps").c_str(), &facts) == 0 &&
         facts.st_uid != status->effective_uid;
}

}  // namespace

std::optional<std::string> why_not_dumpable(const Process& process) {
  if (process.asked.not_to_be_dumped) {
    return "it has asked that no core be kept of it (prctl(PR_SET_DUMPABLE, 0))";
  }
  if (files_are_roots(process.pid()) && !root_gets_all()) {
    return "it is not dumpable: it has asked for that, or has changed its user, or its file may be "
           "executed but not read";
  }
  return std::nullopt;
}

}  // namespace backtrail::tracee
