// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/last_cpu.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

namespace {

/// Returns the CPU in the text of /proc/TID/stat; -1 if it is malformed. parse_stat() would read
/// all that comes before.
int cpu_in(std::string_view stat) {
  // The name is free text up to the last ')'. The state is field 3, the CPU field 39 (proc(5)).
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return -1;
  std::string_view rest = stat.substr(name_end);
  for (int field = 2; field < 39; ++field) {
    const std::size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return -1;
    rest.remove_prefix(blank + 1);
  }
  int cpu = -1;
  std::from_chars(rest.data(), rest.data() + rest.size(), cpu);
  return cpu;
}

}  // namespace

int LastCpu::of(pid_t tid) {
  if (tid == tid_) {
    if (const int cpu = read(); cpu >= 0) return cpu;
    // The thread has ended. Its id may be another thread's now.
  }
  tid_ = tid;
  stat_.reset(
      ::open(ProcFs{}.path(tid, fmt::format("task/{}/stat", tid)).c_str(), O_RDONLY | O_CLOEXEC));
  return read();
}

int LastCpu::read() {
  if (!stat_) return -1;
  std::array<char, 2048> text;  // NOLINT: filled by the kernel
  const ssize_t got = ::pread(stat_.get(), text.data(), text.size(), 0);
  if (got <= 0) return -1;
  return cpu_in(std::string_view{text.data(), static_cast<std::size_t>(got)});
}

}  // namespace backtrail::tracee
