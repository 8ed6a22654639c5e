// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/id_namespace.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

std::optional<ino_t> id_namespace(pid_t id) {
  struct stat facts {};
  if (::stat(ProcFs{}.path(id, "ns/pid").c_str(), &facts) != 0) return std::nullopt;
  return facts.st_ino;
}

bool shares_our_ids(pid_t id) {
  static const std::optional<ino_t> ours = id_namespace(::getpid());
  return ours && id_namespace(id) == ours;
}

}  // namespace backtrail::tracee
