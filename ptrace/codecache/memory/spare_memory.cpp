// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/spare_memory.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <sys/resource.h>

#include "ptrace/os/memory_limit.hpp"

namespace backtrail::tracee::cache {
namespace {

/// A machine of 12 GiB or more has memory for the most.
constexpr std::uint64_t kPartOfMemory = 64;

}  // namespace

std::uint64_t SpareMemory::usual_bytes() {
  return std::min(kMostBytes, memory_at_hand() / kPartOfMemory);
}

bool SpareMemory::may_hold(const MemoryFile& memory) {
  // A new descriptor is the lowest that is free.
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(memory.fd()) < limit.rlim_cur / 2;
}

void SpareMemory::give(std::unique_ptr<MemoryFile> memory, std::string program) {
  if (!may_hold(*memory)) return;
  spares_.push_front({std::move(program), std::move(memory)});
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  spares_.remove_if([&](const Spare& spare) {
    const std::uint64_t more = spare.memory->populated();
    if (count == kMost || bytes + more > most_bytes_) return true;
    ++count;
    bytes += more;
    return false;
  });
}

std::unique_ptr<MemoryFile> SpareMemory::take(std::string_view program) {
  const auto is_free = [](const Spare& spare) { return spare.memory->is_ours_alone(); };
  auto best = std::ranges::find_if(
      spares_, [&](const Spare& spare) { return spare.program == program && is_free(spare); });
  if (best == spares_.end() && is_nearly_full()) {
    const auto oldest = std::find_if(spares_.rbegin(), spares_.rend(), is_free);
    if (oldest != spares_.rend()) best = std::prev(oldest.base());
  }
  if (best == spares_.end()) return nullptr;
  std::unique_ptr<MemoryFile> memory = std::move(best->memory);
  spares_.erase(best);
  memory->clear();
  return memory;
}

bool SpareMemory::is_nearly_full() const {
  if (spares_.size() >= kEnough) return true;
  const auto bytes = std::accumulate(
      spares_.begin(), spares_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const Spare& spare) { return sum + spare.memory->populated(); });
  return bytes >= most_bytes_ / kMost * kEnough;
}

}  // namespace backtrail::tracee::cache
