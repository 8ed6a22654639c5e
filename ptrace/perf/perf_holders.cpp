// SPDX-License-Identifier: Apache-2.0
#include "ptrace/perf/perf_holders.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

namespace fs = std::filesystem;

bool has_perf_event(const fs::path& process) {
  std::error_code ignored;
  for (fs::directory_iterator fd{process / "fd", ignored}; fd != fs::directory_iterator{};
       fd.increment(ignored)) {
    if (fs::read_symlink(fd->path(), ignored) == "anon_inode:[perf_event]") return true;
  }
  return false;
}

}  // namespace

std::vector<PerfHolder> perf_holders(const std::string& proc) {
  std::vector<PerfHolder> out;
  std::error_code ignored;
  for (fs::directory_iterator entry{proc, ignored}; entry != fs::directory_iterator{};
       entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size() || pid == ::getpid())
      continue;
    if (!has_perf_event(entry->path())) continue;
    PerfHolder holder{pid, {}};
    std::ifstream comm{entry->path() / "comm"};
    std::getline(comm, holder.name);
    out.push_back(std::move(holder));
  }
  return out;
}

std::string perf_holders_text() {
  std::string text;
  for (const PerfHolder& holder : perf_holders())
    text += fmt::format("{} {} ({})", text.empty() ? "" : ",", holder.name, holder.pid);
  if (text.empty()) return "; its user is not visible: another account, a container or a VM";
  return "; open perf events:" + text;
}

}  // namespace backtrail::tracee
