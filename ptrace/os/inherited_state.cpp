// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/inherited_state.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

std::vector<int> open_descriptors() {
  std::vector<int> out;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return out;
  const int own = ::dirfd(folder);
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    int fd = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec == std::errc{} && fd != own)
      out.push_back(fd);
  }
  ::closedir(folder);
  std::sort(out.begin(), out.end());
  return out;
}

InheritedSignals note_signals() {
  InheritedSignals out;
  ::sigprocmask(SIG_SETMASK, nullptr, &out.mask);
  for (std::size_t i = 1; i < out.ignored.size(); ++i) {
    struct sigaction action {};
    out.ignored[i] =
        ::sigaction(static_cast<int>(i), nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  }
  return out;
}

// Initialised before main(), before the server changes any of this.
const InheritedSignals signals_at_start = note_signals();
const std::vector<int> descriptors_at_start = open_descriptors();

}  // namespace

const InheritedSignals& inherited_signals() noexcept {
  return signals_at_start;
}

void restore_inherited_signals() noexcept {
  for (std::size_t i = 1; i < signals_at_start.ignored.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = signals_at_start.ignored[i] ? SIG_IGN : SIG_DFL;
    ::sigaction(static_cast<int>(i), &action,
                nullptr);  // fails for SIGKILL, SIGSTOP and libc's own
  }
  ::sigprocmask(SIG_SETMASK, &signals_at_start.mask, nullptr);
}

void keep_own_descriptors_private() {
  for (const int fd : open_descriptors()) {
    if (fd <= STDERR_FILENO) continue;
    if (std::binary_search(descriptors_at_start.begin(), descriptors_at_start.end(), fd)) continue;
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0) ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
}

}  // namespace backtrail::tracee
