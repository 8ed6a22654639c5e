// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/send_kill.hpp"

#include <cerrno>
#include <csignal>

namespace backtrail::tracee {

Result<void> send_kill(const Process& process) {
  int refused = 0;
  bool any = false;
  for (const auto& thread : process.threads()) {
    const int error = thread->send(SIGKILL);
    any = any || error == 0;
    if (error != 0 && error != ESRCH) refused = error;
  }
  if (any || refused == 0) return {};
  return fail(errno_error(refused, "kill", static_cast<std::uint64_t>(process.pid())));
}

}  // namespace backtrail::tracee
