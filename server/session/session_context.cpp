// SPDX-License-Identifier: Apache-2.0
#include "server/session/session_context.hpp"

#include <algorithm>

namespace backtrail::server {

std::optional<ThreadId> SessionContext::first_thread() const {
  for (const pid_t pid : target.processes()) {
    const auto ids = target.thread_ids(pid);
    if (!ids.empty()) return ids.front();
  }
  return std::nullopt;
}

std::optional<ThreadId> SessionContext::selected_thread() const {
  if (general.pid == 0) return first_thread();
  if (!target.alive(general)) return std::nullopt;
  return general;
}

std::optional<ThreadId> SessionContext::thread_in_use() const {
  if (in_use.pid != 0 && target.alive(in_use)) return in_use;
  return selected_thread();
}

std::optional<pid_t> SessionContext::selected_process() const {
  if (general.pid != 0) {
    if (has_process(general.pid)) return general.pid;
    return std::nullopt;
  }
  const auto processes = target.processes();
  if (processes.empty()) return std::nullopt;
  return processes.front();
}

bool SessionContext::has_process(pid_t pid) const {
  const auto processes = target.processes();
  return std::ranges::find(processes, pid) != processes.end();
}

}  // namespace backtrail::server
