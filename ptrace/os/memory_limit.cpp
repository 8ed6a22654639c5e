// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/memory_limit.hpp"

#include <algorithm>
#include <fstream>

#include <unistd.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

/// Returns the number in a file; kNone if there is none, as in "max".
std::uint64_t number_in(const std::string& path) {
  std::ifstream file{path};
  std::uint64_t number = 0;
  return file >> number ? number : kNone;
}

/// Returns the smallest limit of a group and of those that it lies in.
std::uint64_t smallest_limit(const std::string& mount, std::string group, const char* file) {
  std::uint64_t limit = kNone;
  while (true) {
    limit = std::min(limit, number_in(mount + group + "/" + file));
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos) return limit;
    group.resize(slash);
  }
}

}  // namespace

std::uint64_t memory_cgroup_limit(std::string_view cgroups, const std::string& root) {
  std::uint64_t limit = kNone;
  // "NUMBER:CONTROLLERS:GROUP"; version 2 has the number 0 and no controllers.
  while (!cgroups.empty()) {
    const std::string_view line = cgroups.substr(0, cgroups.find('\n'));
    cgroups.remove_prefix(std::min(line.size() + 1, cgroups.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string group{line.substr(second + 1)};
    if (group == "/") group.clear();
    if (controllers.empty()) {
      limit = std::min(limit, smallest_limit(root, group, "memory.max"));
    } else if (controllers == "memory") {
      limit = std::min(limit, smallest_limit(root + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return limit;
}

std::uint64_t memory_at_hand() {
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string cgroups = ProcFs{}.read("self/cgroup").value_or("");
  return std::min(pages * page, memory_cgroup_limit(cgroups, "/sys/fs/cgroup"));
}

}  // namespace backtrail::tracee
