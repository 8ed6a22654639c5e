// SPDX-License-Identifier: Apache-2.0
#include "ptrace/perf/locked_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

#include "arch/base/page.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kKib = 1024;
constexpr unsigned kCapIpcLock = 14;

std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file{path};
  std::int64_t value = 0;
  return file >> value ? std::optional{value} : std::nullopt;
}

bool may_lock_all(const std::string& proc) {
  std::ifstream status{proc + "/self/status"};
  for (std::string word; status >> word;) {
    std::uint64_t bits = 0;
    if (word == "CapEff:" && status >> std::hex >> bits) return (bits >> kCapIpcLock & 1U) != 0;
  }
  return false;
}

}  // namespace

std::optional<std::uint64_t> locked_memory_limit(const std::string& proc) {
  const auto paranoid = number_in(proc + "/sys/kernel/perf_event_paranoid");
  if (may_lock_all(proc) || (paranoid && *paranoid < 0)) return std::nullopt;
  rlimit most{};
  if (::getrlimit(RLIMIT_MEMLOCK, &most) != 0 || most.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  // The kernel's own default.
  constexpr std::int64_t kDefaultKib = 516;
  const std::int64_t kib =
      number_in(proc + "/sys/kernel/perf_event_mlock_kb").value_or(kDefaultKib);
  const long cpus = std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(kib, 0)) * kKib *
             static_cast<std::uint64_t>(cpus) +
         most.rlim_cur;
}

std::uint64_t locked_memory_share(std::optional<std::uint64_t> limit, std::uint64_t threads) {
  if (!limit) return std::numeric_limits<std::uint64_t>::max();
  return std::max(*limit / 2 / std::max<std::uint64_t>(threads, 1), kPageBytes);
}

}  // namespace backtrail::tracee
