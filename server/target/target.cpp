#include "server/target/target.hpp"

namespace backtrail::server {

std::vector<ThreadId> Target::thread_ids(pid_t pid) const {
  std::vector<ThreadId> ids;
  for (const ThreadInfo& info : threads(pid)) ids.push_back(info.id);
  return ids;
}

void Target::set_thread_db_search_path(const std::string& /*path*/) {}

int Target::core(ThreadId thread) const {
  for (const ThreadInfo& info : threads(thread.pid)) {
    if (info.id == thread) return info.core;
  }
  return -1;
}

}  // namespace backtrail::server
