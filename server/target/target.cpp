// SPDX-License-Identifier: Apache-2.0
#include "server/target/target.hpp"

namespace backtrail::server {

Result<decoder::BranchStore*> BranchTracing::store(ThreadId thread) {
  return fail(TraceErrc::kUnsupported, "bts", static_cast<std::uint64_t>(thread.tid));
}

Result<decoder::BranchStore*> BranchTracing::process_store(pid_t pid) {
  return fail(TraceErrc::kUnsupported, "bts", static_cast<std::uint64_t>(pid));
}

Result<void> BranchTracing::feed_stores(ThreadId thread, bool every_record) {
  if (!every_record) return {};
  return fail(TraceErrc::kUnsupported, "bts", static_cast<std::uint64_t>(thread.tid));
}

Result<void> BranchTracing::see_kernel(ThreadId thread) {
  return fail(TraceErrc::kUnsupported, "bts", static_cast<std::uint64_t>(thread.tid));
}

Result<void> BranchTracing::mark_switches(ThreadId thread) {
  return fail(TraceErrc::kUnsupported, "bts", static_cast<std::uint64_t>(thread.tid));
}

Result<void> BranchTracing::keep_history(bool /*on*/) {
  return fail(TraceErrc::kUnsupported, "history");
}

Result<void> BranchTracing::listen_for_tails(const TailListening& /*options*/) {
  return fail(TraceErrc::kUnsupported, "tail");
}

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
