// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/fellow_threads.hpp"

#include <algorithm>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

void evict(const Process& process) {
  for (const auto& other : process.threads()) {
    if (!other->stopped() && other->source() != nullptr) (void)other->interrupt();
  }
}

bool everybody_recorded(const Process& process) {
  return std::all_of(process.threads().begin(), process.threads().end(), [](const auto& thread) {
    return thread->control().zombie || thread->control().starting ||
           (thread->source() != nullptr && thread->source()->kind() == SourceKind::kCache);
  });
}

void disable(Process& process, SourceStatistics& sums, const std::string& why) {
  CacheSpace& space = *process.cache_space;
  if (space.disabled()) return;
  log::ptrace().info("pid={}: stepping from here on: {}", process.pid(), why);
  space.disable(why);
  ++sums.fallbacks["all of a process: " + why];
}

}  // namespace backtrail::tracee::cache
