// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/perf_event_open.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace backtrail::tracee {

Result<UniqueFd> perf_event_open(const perf_event_attr& attributes, pid_t tid) {
  constexpr int kAnyCpu = -1;
  constexpr int kNoGroup = -1;
  perf_event_attr copy = attributes;
  copy.size = sizeof copy;
  const long fd =
      ::syscall(SYS_perf_event_open, &copy, tid, kAnyCpu, kNoGroup, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return fail_errno("perf_event_open", static_cast<unsigned>(tid));
  return UniqueFd{static_cast<int>(fd)};
}

}  // namespace backtrail::tracee
