// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/perf_map_file.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

bool is_theirs(const struct stat& file, const ProcStatus& process) {
  return S_ISREG(file.st_mode) && (file.st_uid == process.effective_uid ||
                                   file.st_uid == process.real_uid || file.st_uid == 0);
}

}  // namespace

std::string read_perf_map(pid_t pid, const ProcFs& proc) {
  const auto process = proc.status(pid);
  if (!process) return {};
  const pid_t own = process->own_id != 0 ? process->own_id : pid;
  const std::string path = proc.path(pid, fmt::format("root/tmp/perf-{}.map", own));
  // O_NONBLOCK, because opening a pipe would block.
  const UniqueFd file{
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)};
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !is_theirs(status, *process)) return {};
  const auto size = static_cast<std::size_t>(status.st_size);
  const std::size_t skipped = size - std::min(size, kMostPerfMapBytes);
  std::string text(size - skipped, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count = ::pread(file.get(), text.data() + got, text.size() - got,
                                  static_cast<off_t>(skipped + got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  // The text begins in the middle of a line.
  if (skipped != 0) text.erase(0, text.find('\n'));
  return text;
}

}  // namespace backtrail::tracee
