// SPDX-License-Identifier: Apache-2.0
#include "server/cli/warm.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptrace/os/unique_fd.hpp"
#include "ptrace/tracee/launch.hpp"
#include "server/record/warming.hpp"

namespace backtrail::server {
namespace {

/// Translations of one program, in bytes. Every process of it loads them all.
constexpr std::uint64_t kMostBytes = 24ULL << 20;

void say(int fd, const std::string& line) {
  (void)!::write(fd, line.data(), line.size());
}

/// Translates one program in a process of its own. Returns its exit status.
int warm_one(const std::string& program) {
  using Store = tracee::cache::PersistentStore;
  const auto folder = Store::default_folder();
  // The dynamic linker writes to standard output.
  const tracee::UniqueFd out{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)};
  const tracee::UniqueFd null{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  if (!out || !null || ::dup2(null.get(), STDOUT_FILENO) < 0 ||
      ::dup2(null.get(), STDIN_FILENO) < 0) {
    return 1;
  }
  const auto warmed = warm(program, std::make_shared<Store>(folder), kMostBytes);
  if (!warmed) {
    say(STDERR_FILENO,
        fmt::format("backtrail: {}: not translated: {}\n", program, warmed.error().message()));
    return 1;
  }
  if (!warmed->kept) {
    say(STDERR_FILENO,
        fmt::format("backtrail: {}: the translations cannot be kept in '{}'; it must be a folder "
                    "that is yours and that nobody else can write, with room\n",
                    program, folder.string()));
    return 1;
  }
  say(out.get(), fmt::format("{}: {} superblocks{}\n", program, warmed->superblocks,
                             warmed->libraries ? "" : ", without its libraries"));
  return 0;
}

/// Waits for a child; returns true if it succeeded.
bool wait_for_one() {
  int raw = 0;
  pid_t child = -1;
  do {
    child = ::wait(&raw);
  } while (child < 0 && errno == EINTR);
  return child > 0 && WIFEXITED(raw) && WEXITSTATUS(raw) == 0;
}

}  // namespace

int run_warm(const WarmOptions& options) {
  if (tracee::cache::PersistentStore::default_folder().empty()) {
    fmt::print(stderr,
               "backtrail: nothing can be kept: neither XDG_CACHE_HOME nor HOME names a folder, or "
               "BACKTRAIL_KEEP is 0\n");
    return 1;
  }
  const std::size_t at_once = std::max(1U, std::thread::hardware_concurrency());
  std::size_t running = 0;
  bool good = true;
  for (const std::string& program : options.programs) {
    if (running == at_once) {
      good = wait_for_one() && good;
      --running;
    }
    const pid_t child = ::fork();
    if (child == 0) {
      int status = 1;
      try {
        status = warm_one(program);
      } catch (const std::exception& error) {
        say(STDERR_FILENO, fmt::format("backtrail: {}: {}\n", program, error.what()));
      }
      ::_exit(status);
    }
    if (child < 0) {
      fmt::print(stderr, "backtrail: {}: no process can be made\n", program);
      good = false;
      continue;
    }
    ++running;
  }
  for (; running != 0; --running) good = wait_for_one() && good;
  return good ? 0 : 1;
}

}  // namespace backtrail::server
